"""The operator's end of runs on hosts: a process for each project, `python -m subdeck.core.hosts.relay ROOT`.

`relay` is its loop. It knows the open `runs`, has the `scheduler` assign them `slots` of hosts, reaches the hosts by
`connections`, and sends commands and files as `transfers`; `orphans` are runs that hosts have and that are not open
here. Nothing outside imports these modules.
"""
