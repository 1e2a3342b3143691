"""Finding in a transcript: words, errors, the next match, how many there are."""
