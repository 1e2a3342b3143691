"""A settings file with every key in it, explained and commented out."""

from __future__ import annotations

from collections.abc import Iterator

from .schema import KEYS, ProjectMay

_HEAD = """\
## Settings of subdeck. Yours: ~/.config/subdeck/config.yaml (below XDG_CONFIG_HOME where that is set);
## a project's: .pi/subagents/config.yaml, which may set only what is marked so here.
## They are read at start and again at each launch. Remove "# " before a line to set it.
"""

_PROJECT = {
    ProjectMay.NOTHING: "",
    ProjectMay.OVERRIDES: " [project: goes before yours]",
    ProjectMay.ADDS: " [project: is added to yours]",
    ProjectMay.LOWERS: " [project: may lower it]",
}


def example_settings() -> str:
    """Answer the text of the file; without the two signs before each line of YAML it is a valid one."""
    return _HEAD + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    last = ""
    for name, key in KEYS.items():
        section, _, member = name.rpartition(".")
        if not section or section != last:
            yield ""
        if section and section != last:
            yield f"# {section}:"
        yield f"## {key.meaning}{_PROJECT[key.project]}"
        yield f"#   {member}: {key.example}" if section else f"# {name}: {key.example}"
        last = section
