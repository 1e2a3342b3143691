"""TypeScript files that the pi agent loads into its children."""
