"""The hosts on which runs are: what the relay knows of them, on the header, in toasts and in a view of their own."""
