"""The operator's side of runs on hosts: one process per project, `python -m subdeck.core.hosts.relay ROOT`.

`relay` is its loop. It reads the open `runs`, has the `scheduler` assign them `slots` of hosts, reaches the hosts
through `connections`, and sends commands and files as `transfers`; `orphans` are runs that hosts have and that are not
open here. Nothing outside imports these modules.
"""
