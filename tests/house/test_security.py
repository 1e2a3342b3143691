"""The promises of `SECURITY.md` and its appendix are tested."""

from __future__ import annotations

import re
from pathlib import Path

from . import promises
from .reference import GENERATED
from .words import refused

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "SECURITY.md").read_text()
PROMISES = [promise for section in promises.sections() for promise in section.promise]
THREATS = 8


def test_each_test_that_is_named_exists() -> None:
    """Each promise names existing tests of the suite."""
    named = {tuple(test.split("::")) for promise in PROMISES for test in promise.tests}
    missing = {
        f"{file}::{name}"
        for file, name in named
        if not (ROOT / file).exists()
        or not re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE)
    }
    assert set() == missing


def test_each_promise_names_its_test() -> None:
    """Each promise has a test, and appears only once."""
    assert len(PROMISES) > 80
    assert [] == [promise.text for promise in PROMISES if not promise.tests]
    assert len(PROMISES) == len({promise.text for promise in PROMISES})


def test_it_leads_to_the_appendix() -> None:
    """The page links the list of promises, which is compared with its source like all generated documents."""
    assert "docs/reference/promises.md" in GENERATED
    assert "(docs/reference/promises.md)" in TEXT


def test_it_opens_with_the_threats() -> None:
    """The page begins with a threat model of eight lines, and then how to report."""
    opening = TEXT.partition("\n## ")[0]
    assert THREATS == len(re.findall(r"^- \*\*", opening, re.MULTILINE))
    assert [] == [line for line in opening.splitlines() if len(line) > 120]
    assert opening.index("\n- **") < opening.index("**Report a vulnerability**")


def test_it_is_in_plain_words() -> None:
    """No sentence of the page or its appendix has a wording refused in texts for users."""
    prose = re.sub(r"`[^`\n]+`", "`…`", "\n".join((TEXT, *(promise.text for promise in PROMISES))))
    assert [] == [line for line in prose.splitlines() if refused(line)]


def test_keys_of_presets_are_known() -> None:
    """Each preset key named to turn something off exists."""
    from subdeck.core.presets.fields import FIELDS

    keys = set(re.findall(r"`(\w+): \S[^`]*`", TEXT)) - {"defaultProjectTrust"}
    assert {"context_files", "project_resources", "prompt_mode", "tools"} <= keys
    assert set() == keys - set(FIELDS)
