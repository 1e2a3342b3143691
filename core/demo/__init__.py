"""`subdeck demo`: a busy project that is made up, in a private directory, and the process that keeps its runs alive."""
