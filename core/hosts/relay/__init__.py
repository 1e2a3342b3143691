"""The relay: the operator's end, a process of its own for each project with runs on hosts."""
