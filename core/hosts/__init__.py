"""Run on other machines: the messages between the operator and the hosts, and the programs at both ends.

On each host an agent keeps each relay's runs in the spool, as a project. On the operator's machine a relay per project
has runs placed, mirrors their files, and vouches for them. `runners.hosts` starts the relay; `cli.hosts` has the
commands for hosts and clusters. No other package imports this one.
"""
