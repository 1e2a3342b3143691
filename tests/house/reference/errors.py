"""`docs/reference/errors.md`: exit codes, and the errors with a stable code."""

from __future__ import annotations

from subdeck.core.error_codes import CODES, EXIT_CODES, SIGNALLED

from . import markdown

EXAMPLE = """\
```json
{
  "error": {
    "code": "run.not_found",
    "what": "no run matches \\"4ae0bd\\"",
    "where": "run",
    "hint": "subdeck status --all lists all runs"
  }
}
```"""


def page() -> str:
    return markdown.page(
        "Exit codes and errors",
        "Decide in a script what went wrong.",
        "## Exit codes",
        markdown.table(
            ("Code", "Meaning"), [*((str(code), text) for code, text in EXIT_CODES.items()), ("128 + N", SIGNALLED)]
        ),
        "`doctor`, `init`, `answer`, `diff`, `apply`, `merge`, `send`, `reply` and `wait` use some of these codes for"
        " their own results: see [cli.md](cli.md).",
        "## Errors",
        "With `--json`, an error is one JSON document on stderr:",
        EXAMPLE,
        "`what`, `where` and `hint` are sentences for people and may change. `code` does not change; it is empty for an"
        " error that has no code.",
        markdown.table(("Code", "Meaning"), [(f"`{code}`", meaning) for code, meaning in sorted(CODES.items())]),
    )
