"""Hosts reached only by ssh, over the stdin and stdout of `subdeck hosts agent`."""
