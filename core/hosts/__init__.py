"""Runs on other machines: what travels between the operator and the hosts, and the programs at both ends.

On each host an agent keeps the runs in a spool, as a project of its own; for each project of the operator a relay has
them placed, mirrors what they write, and vouches for them. `runners.hosts` starts the relay, and `cli.hosts` what hosts
and clusters need; nobody else imports any of this.
"""
