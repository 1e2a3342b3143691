"""What may be spent in a day, and the ledger of what was."""
