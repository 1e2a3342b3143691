"""The options of `apply`, `merge` and `discard` that come from the table of git operations."""

from __future__ import annotations

import click
import pytest
from subdeck.core.cli import changes
from subdeck.core.cli.changes import _chosen
from subdeck.core.errors import UsageError
from subdeck.core.work.operation import APPLY, COMMIT, MERGE, OPERATIONS, SQUASH, Operation

CHOSEN = [one for one in OPERATIONS if one.option]


@pytest.mark.parametrize("operation", CHOSEN, ids=[one.option for one in CHOSEN])
def test_an_operation_has_its_option(operation: Operation) -> None:
    """The command of an operation has its option, with its help, and the options that all operations have."""
    command: click.Command = getattr(changes, operation.command)
    (option,) = (one for one in command.params if isinstance(one, click.Option) and operation.option in one.opts)
    assert (operation.parameter, operation.option_help) == (option.name, option.help)
    assert {"dry_run", "yes", "as_json"} <= {one.name for one in command.params}
    assert operation.takes_message == ("message" in {one.name for one in command.params})


def test_the_flags_choose_one_operation() -> None:
    """Without a flag the command's own operation is chosen, and two flags are refused."""
    assert (APPLY, MERGE) == (_chosen(APPLY, {}), _chosen(MERGE, {"squash": False, "commit": False}))
    assert (SQUASH, COMMIT) == (_chosen(MERGE, {"squash": True}), _chosen(MERGE, {"commit": True}))
    with pytest.raises(UsageError, match="--commit and --squash cannot be combined"):
        _chosen(MERGE, {"squash": True, "commit": True})
