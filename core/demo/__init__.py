"""`subdeck demo`: a made-up busy project in a private directory, and the process that keeps its runs alive."""
