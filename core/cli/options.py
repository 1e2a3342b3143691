"""Options that several commands share."""

from __future__ import annotations

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")

runs_argument = click.argument("refs", metavar="RUN...", nargs=-1, required=True)
"""Ids, short ids or unambiguous beginnings of either; `Engine.find` turns them into ids."""

run_argument = click.argument("ref", metavar="RUN")
