"""Pair, read and reply in headless Chromium at the width of a phone, by keyboard; exit with 1 if anything is wrong.

In light and dark, with scripts and without. `--pictures DIR` also takes the pictures of the documents.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from subdeck.core.engine import Engine
from subdeck.core.run.events import Decision, Event
from subdeck.core.run.inbox import InboxEntry
from subdeck.core.run.model import Verdict
from subdeck.core.web.devices import Devices

from tests import isolation
from tests.core.talking import answering, listening, permission
from tests.core.web.browsing import Browser, serving
from tests.factories import make_finished, make_meta

from .chromium import WIDTH, Chromium, Tab, chromium, program

DIFF = """\
--- a/src/auth.py
+++ b/src/auth.py
@@ -41,7 +41,9 @@ def check(token: str) -> User:
     claims = decode(token)
-    if claims.expires < now():
-        return claims.user
+    if claims.expires < now():
+        raise TokenExpired(claims.expires)
+    if claims.audience != AUDIENCE:
+        raise WrongAudience(claims.audience)
     return claims.user
"""
EDIT = {
    "title": "wants to edit a file", "tool_name": "edit", "command": "", "paths": ("src/auth.py",), "diff": DIFF,
    "rule": "edit", "run_rule": "edit(src/**)",
}  # fmt: skip
WIDE = {"command": f"make {'x' * 300} && cat {'/very/long/path' * 20}", "run_rule": "bash(make *)"}
FAULTS = """
(() => {
  const faults = [];
  if (document.documentElement.scrollWidth > innerWidth) faults.push("wider than the screen");
  const targets = "button, .button, .rows a, header a, input:not([type=hidden]):not([type=radio]), textarea, select";
  for (const one of document.querySelectorAll(targets)) {
    const box = one.getBoundingClientRect();
    if (box.height < 44) faults.push(`${one.outerHTML.slice(0, 60)} is ${box.height} px high`);
    if (box.right > innerWidth || box.left < 0) faults.push(`${one.outerHTML.slice(0, 60)} is cut off`);
  }
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = parts(colour).map((part) => part / 255)
      .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((parts(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  for (const one of document.body.querySelectorAll("*")) {
    if (![...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
    if (one.matches("option, script")) continue;
    const pair = [light(getComputedStyle(one).color), light(behind(one))].sort((a, b) => a - b);
    const contrast = (pair[1] + 0.05) / (pair[0] + 0.05);
    if (contrast < 4.5) faults.push(`${one.outerHTML.slice(0, 60)} has a contrast of ${contrast.toFixed(1)}`);
  }
  return faults;
})()
"""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.page", description=__doc__.partition("\n")[0])
    parser.add_argument("--pictures", type=Path, help="take the pictures of the documents in this directory")
    options = parser.parse_args(arguments)
    executable = program()
    if executable is None:
        print("skipped: Chromium is not installed", file=sys.stderr)
        return 0
    failed: list[str] = []
    with _project() as engine, chromium(executable) as browser, serving(engine) as server:
        for scheme in ("light", "dark"):
            for scripts in (True, False):
                name = f"{scheme}, {'with' if scripts else 'without'} scripts"
                try:
                    _visit(engine, server, Tab(browser, scheme=scheme, scripts=scripts), scripts=scripts)
                    print(f"{name}: ok", flush=True)
                except AssertionError as error:
                    failed.append(f"{name}: {error}")
        if options.pictures:
            _take_pictures(engine, server, browser, options.pictures)
    for line in failed:
        print(line, file=sys.stderr)
    return int(bool(failed))


def _visit(engine: Engine, server: Browser, tab: Tab, *, scripts: bool) -> None:
    """Go from the pairing link to the result of a reply, only by keyboard."""
    taken: list[InboxEntry] = []

    def decide(entry: InboxEntry) -> list[Event]:
        taken.append(entry)
        verdict = entry.verdict or Verdict.DENY
        return [Decision(request=entry.request, verdict=verdict, text=entry.text, by=entry.by, message=entry.id)]

    _pair(server, tab)
    with listening(engine.project, permission(**EDIT), cwd=engine.project.root) as run, answering(run, decide):
        tab.open(f"{server.origin}/")
        _check(tab)
        if scripts:
            run.write(permission(2, **WIDE))
            tab.until(f"document.querySelector('a[href$=\"{run.run_id}/q2\"]') !== null", "a new request by itself")
            _check(tab)
        tab.tab_to(f'a[href="/run/{run.run_id}/q1"]')
        tab.press_and_load("Enter")
        _check(tab)
        tab.tab_to('button[value="allow"]')
        tab.press_and_load("Enter")
        _check(tab)
        heading = tab.value("document.querySelector('h1').textContent")
        assert heading == "Reply sent", heading
        assert [entry.verdict for entry in taken] == [Verdict.ALLOW], taken
        for path in (f"/run/{run.run_id}", f"/run/{run.run_id}/q2", f"/run/{run.run_id}/q1", "/nosuch"):
            tab.open(f"{server.origin}{path}")
            _check(tab)


def _pair(server: Browser, tab: Tab, name: str = "Phone") -> None:
    tab.open(f"{server.origin}/pair?code={Devices().new_code()}")
    _check(tab)
    tab.tab_to("button")
    tab.press_and_load("Enter")
    assert tab.value("location.pathname") == "/", name


def _check(tab: Tab) -> None:
    faults = tab.value(FAULTS)
    assert not faults, f"{tab.value('location.pathname')}: {faults}"


def _take_pictures(engine: Engine, server: Browser, browser: Chromium, directory: Path) -> None:
    """Take a request with a diff on a phone, light and dark."""
    meta = {"preset": "implement", "description": "Check the audience", "task": "Check the token's audience too"}
    make_finished(
        engine.project, make_meta(**meta | {"task": "Where are tokens checked?"}), final_text="In src/auth.py"
    )
    with listening(engine.project, permission(**EDIT), cwd=engine.project.root, **meta) as run:
        tab = Tab(browser, scheme="light", scripts=True, width=WIDTH, height=800)
        _pair(server, tab)  # once: more attempts in this minute would be refused
        for scheme in ("light", "dark"):
            tab.prefer(scheme)
            tab.open(f"{server.origin}/run/{run.run_id}/q1")
            tab.picture(directory / f"page-{scheme}.png")
            tab.open(f"{server.origin}/")
            tab.picture(directory / f"page-list-{scheme}.png")


@contextmanager
def _project() -> Iterator[Engine]:
    """Enter a separate world with an empty project."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="sdpage-", dir="/tmp", ignore_cleanup_errors=True) as root:
        isolation.enter(isolation.variables(Path(root)) | {isolation.MARKER: secrets.token_hex(8)})
        project = Path(root, "shop")
        (project / ".git").mkdir(parents=True)
        (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        try:
            yield Engine.open(str(project))
        finally:
            isolation.enter(before)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
