"""One run opened: what is known of it, tab by tab."""
