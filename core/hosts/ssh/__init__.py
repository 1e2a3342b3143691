"""Hosts that are reached by ssh alone, over the stdin and stdout of `subdeck hosts agent`."""
