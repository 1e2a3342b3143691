"""A project with links, protected files and odd names, and ways to write a path into, around and out of it."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

from subdeck.core.agents.loader import path_rules_of
from subdeck.core.permissions.rules import Policy
from subdeck.core.run.events import Request
from subdeck.core.run.model import Permissions, RequestKind, Verdict

from tests.killing import IS_WHOLE

COMPOSED, DECOMPOSED = (unicodedata.normalize(form, "caf\u00e9") for form in ("NFC", "NFD"))


def lay_out(project: Path) -> Path:
    """Fill a project, and return the directory beside it that its runs may not reach without asking."""
    outside = project.parent / "outside"
    for name in ("src/one/two", "src/my dir", ".git/hooks", ".claude", "other"):
        (project / name).mkdir(parents=True, exist_ok=True)
    for name in ("deep", "%2e%2e"):
        (outside / name).mkdir(parents=True, exist_ok=True)
    links = {
        "src/out": "../../outside",
        "down": "src/one/two",
        "up": ".git/hooks",
        "src/git": "../.git",
        "src/a\u2019b": "../../outside/key",
        f"src/{DECOMPOSED}": "../../outside/key",
        "src/Shot 9 \u202fPM.png": "../../outside/key",
        "src/Shot 9\u202fPM.png": "../../outside/key",
    }
    for name, target in links.items():
        (project / name).symlink_to(target)
    (outside / "key").write_text("key\n")
    (project / ".git" / "config").write_text("[core]\n")
    (project / "src" / "kept").write_text("kept\n")
    return outside


SPELLINGS = (
    *("src/a", "./src/a", "src//a", "other/../src/a", "src/one/../a", "{cwd}/src/a", "src/my dir/a", "other/a"),
    *("@src/a", "@{cwd}/src/a", "@@src/a", "@{outside}/a", "{outside}/a", "../outside/a", "~/a", "@~/a", "~"),
    *("file://{outside}/a", "@file://{outside}/a", "file://localhost{outside}/a", "file://LOCALHOST{outside}/a"),
    *("file://loc%61lhost{outside}/a", "file://elsewhere{outside}/a", "file:{outside}/a", "FILE://{outside}/a"),
    *("file://{cwd}/src/a", "file://{cwd}/src/%2e%2e/%2e%2e/outside/a", "file://{cwd}/src/.%2E/../outside/a"),
    *("file://{cwd}/src\\..\\..\\outside\\a", "file://{cwd}/src/a?../../x", "file://{cwd}/s\trc/a", "file:///"),
    *("file://{cwd}/%2egit/a", "file://{cwd}/.git/a", "@file://{cwd}/.%67it/a"),
    *("src/%2e%2e/%2e%2e/outside/a", "src\\..\\..\\outside\\a", "src/out/a", "src/out/../a", "src/out/deep/../a"),
    *("down/../a", "down/../../a", "down/../../../outside/a", "down/../../../other/a", "{cwd}/down/../../../outside/a"),
    *("src/my\u00a0dir/a", "src/my\u2003dir/a", "src/my\u202fdir/a", "\u00a0src/a", "src/a\u00a0", " src/a", "src/a "),
    *("\ufeffsrc/a", "src/a\ufeff", "\u3000{outside}/a", "\t{outside}/a", "src/a\n", "src/\u200ba", "src/\u00ada"),
    *("src/a\u2019b", "src/a'b", f"src/{COMPOSED}", f"src/{DECOMPOSED}", "src/Shot 9 PM.png", "src/Shot 9\u202fPM.png"),
    *(".git/a", "./.git/a", "src/../.git/a", "{cwd}/.git/a", "src/git/a", "up/a", "down/../../../.git/a"),
    *(
        ".GIT/a",
        ".git /a",
        ".g\u200cit/a",
        ".git\u00a0/../.git/a",
        "@.git/a",
        ".claude/a",
        "src/.claude/a",
        ".mcp.json",
    ),
    *("'src/a'", '"src/a"', "$HOME/a", "${HOME}/a", "src/*", "src/[a]", "src/a;b", "src/a#b", "src/a?b", "http://x/a"),
)
"""`{cwd}` and `{outside}` stand for directories."""
TRIED = SPELLINGS if IS_WHOLE else SPELLINGS[::3]
"""Spellings for real agents: all in `make soak`."""


def written(spelling: str, cwd: Path | str, outside: Path | str) -> str:
    return spelling.replace("{cwd}", str(cwd)).replace("{outside}", str(outside))


def landed(*directories: Path) -> dict[str, str]:
    """Remove the files with a mark, a line that begins with `mark `; return their real paths by their marks."""
    found: dict[str, str] = {}
    for directory in directories:
        for parent, below, names in os.walk(directory):
            below[:] = [name for name in below if name != "subagents"]
            for file in (os.path.realpath(os.path.join(parent, name)) for name in names):
                if os.path.isfile(file) and os.path.getsize(file) < 1000:
                    text = Path(file).read_text(errors="replace")
                    if text.startswith("mark "):
                        found[text.rstrip("\n")] = file
                        os.unlink(file)
    return found


def asked(tool: str, *paths: str, **fields: object) -> Request:
    given: dict[str, object] = {"id": "1", "kind": RequestKind.PERMISSION, "title": "wants", "tool_name": tool}
    return Request(**{**given, "paths": paths, **fields})  # type: ignore[arg-type]


def decided(kind: str, request: Request, cwd: Path | str, **rules: str) -> tuple[Verdict | None, str]:
    """Decide an agent's request by one rule of each list."""
    permissions = Permissions(**{name: (rule,) for name, rule in rules.items()})
    return Policy(permissions, str(cwd), path_rules_of(kind)).decide(request)


# --- ways to a file that a rule denies ---

NOTEBOOK = (
    '{"cells":[{"cell_type":"code","id":"c1","source":["kept"],"metadata":{},"outputs":[],"execution_count":null}],'
    '"metadata":{},"nbformat":4,"nbformat_minor":5}'
)
HUSH = "hush"
"""In each file below `secret`, and in one file's name."""


def hide(project: Path) -> None:
    """Fill a project with a secret directory and links to it."""
    for name in ("secret/sub", f"secret/{DECOMPOSED}", "src/sub", "other", ".git/hooks"):
        (project / name).mkdir(parents=True, exist_ok=True)
    for name in ("key", "hush-name", "sub/key", "my key", "a\u2019b", f"{DECOMPOSED}/key", "n.ipynb"):
        (project / "secret" / name).write_text(NOTEBOOK if name == "n.ipynb" else f"{HUSH}\n")
    (project / "src" / "plain").write_text("plain\n")
    (project / "src" / "n.ipynb").write_text(NOTEBOOK)
    links = {
        **{"to": "secret", "src/to": "../secret", "abs": f"{project}/secret", "down": "secret/sub", "loop": "loop"},
        **{"self": "/proc/self/cwd", "fd": "/dev/fd", "src/root": "/proc/self/root", "other/up": "../secret/sub"},
    }
    for name, target in links.items():
        (project / name).symlink_to(target)


WAYS = (
    *("secret/", "secret//", "secret/./", ".//secret///", "nothing/../secret/", "/{cwd}/secret/", "//{cwd}//secret/"),
    *("../{base}/secret/", "SECRET/", "Secret/", "secret./", "secret /", "secret\u00a0/", " secret/", "\u3000secret/"),
    *("\ufeffsecret/", "\u200bsecret/", "secret\u200b/", "\tsecret/", "\nsecret/", "\u0085secret/", "\u2028secret/"),
    *("~root/../{cwd}/secret/", "~/../{cwd}/secret/", "~+/secret/", "~{cwd}/secret/", "./~/../secret/"),
    *("/proc/self/root{cwd}/secret/", "/proc/self/cwd/secret/", "/proc/thread-self/cwd/secret/"),
    *(
        "/proc/self/task/../cwd/secret/",
        "/proc//self//cwd/secret/",
        "/proc/./self/cwd/secret/",
        "/proc/1/root{cwd}/secret/",
    ),
    *("/dev/fd/../cwd/secret/", "/dev/../proc/self/cwd/secret/", "fd/../cwd/secret/", "/dev/stdin/../secret/"),
    *("self/secret/", "self/self/to/", "src/root{cwd}/secret/", "secret%2f", "%73ecret/", "%2e/secret/"),
    *("file://{cwd}/secret/", "file:{cwd}/secret/", "FILE://{cwd}/secret/", "file:secret/", "file://{cwd}/%73ecret/"),
    *(
        "secret\\",
        ".\\secret\\",
        "src\\..\\secret\\",
        "'secret/",
        "`secret/",
        "@secret/",
        "@{cwd}/secret/",
        "@@secret/",
    ),
    *("to/", "src/to/", "self/to/", "abs/", "to/sub/../", "down/../", "other/up/../", "to//", "src/../to/./"),
    *("$PWD/secret/", "se*ret/", "secre?/", "{secret,x}/", "[s]ecret/", "\uff53ecret/", "./" * 2100 + "secret/"),
    *(
        "C:{cwd}/secret/",
        "/c:{cwd}/secret/",
        "\\\\?\\{cwd}/secret/",
        "//localhost{cwd}/secret/",
        "../" * 12 + "{cwd}/secret/",
    ),
)
"""Names for a directory, with and without a way to `secret`; `{cwd}` and `{base}` stand for the project and its
name.
"""
NAMES = (
    *("key ", "key\u00a0", "key.", "key/", "key/.", "key\n", "key\t", "key\x00", "key\x00.txt", "key#x", "key?x"),
    *("key:1", "key#L1", "KEY", "ke\u200by", "my\u00a0key", "my\u2003key", "my\u202fkey", "a'b", "sub//../key"),
    *("key/../key", "nothing/../key", "key\\", "key\ufeff", f"{COMPOSED}/key", f"{DECOMPOSED}/key"),
)
"""Names for files in the directory."""
GLOBS = (
    *("../secret/*", "../{secret,x}/*", "../s*/*", ".?/secret/*", "../+(secret)/*", "{..,x}/secret/*", "[.]./secret/*"),
    *("**/../secret/*", "sub/../../secret/*", "..//secret/*", "\\.\\./secret/*", "{.,..}/secret/*", "to/*", "to/**"),
    *("@(..|x)/secret/*", "{cwd}/secret/*", "/{cwd}/secret/*", "{{cwd}/secret,x}/*", "~/../{cwd}/secret/*", "**/hush*"),
    *("/proc/self/cwd/secret/*", "../self/secret/*", ".{.,x}/secret/*", "{a..z}ecret/*", "--follow", "-L", "* -L"),
)
"""Search patterns for `src`."""


def ways_to(project: Path, name: str) -> list[str]:
    """Return paths to a file in `secret`, or to that directory if there is no name."""
    cwd = os.path.realpath(project)
    return [
        way.replace("{cwd}", cwd).replace("{base}", os.path.basename(cwd)) + name
        for way in (WAYS if IS_WHOLE else WAYS[:: 3 if name else 2])
    ]


def secrets_of(project: Path) -> dict[str, str]:
    """Return the files in `secret` with their contents."""
    files = (path for path in (project / "secret").rglob("*") if path.is_file())
    return {str(path.relative_to(project)): path.read_text() for path in files}
