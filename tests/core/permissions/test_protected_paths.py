"""Files that start programs: protected from rules that do not name them, in every spelling."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from subdeck.core.agent_kinds import KINDS
from subdeck.core.agents.loader import path_rules_of
from subdeck.core.permissions import path_patterns
from subdeck.core.permissions.path_readings import of_file_url, start_of_glob
from subdeck.core.permissions.rules import Policy, guarded_tools
from subdeck.core.run.model import Permissions, Verdict

from tests.repositories import git

from .path_spellings import SPELLINGS, asked, decided, lay_out, written

ALLOWED = (Verdict.ALLOW, "edit(**)")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    lay_out(project)
    return project


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("path", "name"),
    [
        *((f"{name}/x", name) for name in (".git", ".pi", ".agents", ".claude", ".codex", ".gemini", ".qwen")),
        *((f"{name}/x", name) for name in (".opencode", ".copilot", ".github/copilot", ".github/extensions")),
        *((f"{name}/x", name) for name in (".github/hooks",)),
        *((name, name) for name in (".mcp.json", ".claude.json", "opencode.json", "opencode.jsonc", ".gitmodules")),
        ("packages/a/.claude/settings.json", ".claude"),
        ("sub/.git", ".git"),
        (".vscode/mcp.json", ".vscode/mcp.json"),
        ("up/post-checkout", ".git"),
        ("src/git/config", ".git"),
        ("src/../.git/config", ".git"),
        ("{cwd}/.pi/settings.json", ".pi"),
        (".GIT/config", ".GIT"),
        (".git./config", ".git."),
        (".Claude/settings.json", ".Claude"),
        ("GIT~1/config", "GIT~1"),
        (".git::$INDEX_ALLOCATION/config", ".git::$INDEX_ALLOCATION"),
        ("\uff0egit/config", "\uff0egit"),
    ],
)
def test_no_rule_allows_what_it_does_not_name(project: Path, kind: str, path: str, name: str) -> None:
    """Changes to git's files and any agent's settings need permission, for every agent."""
    request = asked("edit", written(path, project, ""))
    for rule in ("edit(**)", "edit", "*", "edit(*/**)", f"edit({project}/**)", "edit(.*/**)", "edit(**/*)"):
        verdict, why = decided(kind, request, project, allow=rule)
        assert verdict is None, rule
        assert why in (f"protected path {name}", "unclear path") if "%" in path or ":" in path else name in why
    policy = Policy(None, str(project), path_rules_of(kind))
    assert policy.run_rule(request) == ""
    policy.allow_in_run("edit(**)")
    assert policy.decide(request)[0] is None


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("edit(.git/**)", ".git/config"),
        ("edit(.git/config)", ".git/config"),
        ("edit(**/.claude/**)", "packages/a/.claude/settings.json"),
        ("edit(.github/copilot/**)", ".github/copilot/settings.json"),
        ("edit(.mcp.json)", ".mcp.json"),
        ("edit(.git/**)", "up/post-checkout"),
    ],
)
def test_a_rule_allows_the_protected_file_that_it_names(project: Path, rule: str, path: str) -> None:
    """A rule that names the protected file without a star allows it."""
    assert decided("pi", asked("edit", path), project, allow=rule) == (Verdict.ALLOW, rule)
    assert decided("pi", asked("edit", path), project, allow=rule, ask="edit") == (None, "edit")


@pytest.mark.parametrize(
    "path", ["src/a.py", "README.md", ".github/workflows/x.yml", ".gitignore", "src/git.py", ".env"]
)
def test_other_files_are_not_protected(project: Path, path: str) -> None:
    assert decided("pi", asked("edit", path), project, allow="edit(**)") == ALLOWED


@pytest.mark.processes
def test_a_git_directory_is_told_by_what_lies_in_it(tmp_path: Path) -> None:
    """A repository's directory is protected under any name: a separate one, a bare one, and a worktree's."""
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q", "--separate-git-dir", str(project / "store"))
    git(project, "commit", "-q", "--allow-empty", "-m", "first")
    git(project, "init", "-q", "--bare", "fixtures/bare")
    git(project, "worktree", "add", "-q", str(tmp_path / "tree"))
    (project / "alias").symlink_to("store/hooks")
    paths = ("store/config", "fixtures/bare/hooks/update", "store/worktrees/tree/config.worktree", "alias/x", ".git")
    for path in paths:
        assert decided("claude", asked("edit", path), project, allow="edit(**)")[0] is None, path
    real = f"{project}/store/config"
    assert decided("claude", asked("edit", real), tmp_path / "tree", allow=f"edit({tmp_path}/**)")[0] is None
    assert decided("claude", asked("edit", "store/config"), project, allow="edit(store/**)")[0] is Verdict.ALLOW


@pytest.mark.parametrize("last", ["HEAD", "objects/info/x", "commondir", "config"])
def test_no_git_directory_is_made_piece_by_piece(tmp_path: Path, last: str) -> None:
    """The file that turns a directory into a repository is protected, in any order of writing."""
    pieces = ("HEAD", "refs/heads/x", "commondir" if last == "commondir" else "objects/info/x", "config")
    for piece in pieces:
        if piece != last:
            (tmp_path / "bare" / piece).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "bare" / piece).touch()
    assert decided("pi", asked("write", f"bare/{last}"), tmp_path, allow="edit(**)")[0] is None
    assert decided("pi", asked("write", "other/HEAD"), tmp_path, allow="edit(**)") == ALLOWED


def test_settings_are_protected_where_links_lead(project: Path) -> None:
    """A settings file reached by a link is not changed by a rule for its real path."""
    for name in ("conf/claude", "hooks", "conf/one"):
        (project / name).mkdir(parents=True)
    (project / ".codex").symlink_to("conf/claude")
    (project / ".claude" / "settings.json").symlink_to("../conf/one/settings.json")
    (project / ".git" / "hooks" / "pre-commit").symlink_to("../../hooks/pre-commit")
    for path in ("conf/claude/x", "conf/one/settings.json", "hooks/pre-commit"):
        for rule in ("edit(**)", "edit(conf/**)", f"edit({path})"):
            assert decided("codex", asked("edit", path), project, allow=rule)[0] is None, (path, rule)
    assert decided("codex", asked("edit", "conf/one/other"), project, allow="edit(**)") == ALLOWED


def test_a_second_name_of_a_file_is_unclear(project: Path) -> None:
    """A hard link to a protected file, and a whole directory, are covered by no rule that allows."""
    os.link(project / ".git" / "config", project / "src" / "harmless")
    for path in ("src/harmless", "src", ".", "src/one"):
        assert decided("pi", asked("edit", path), project, allow="edit(**)") == (None, "unclear path"), path
    assert decided("pi", asked("edit"), project, allow="edit") == (None, "unclear path")
    denied = decided("pi", asked("edit", "src/harmless"), project, deny="edit(.git/config)")
    assert denied == (Verdict.DENY, "edit(.git/config)")


def test_a_worktree_of_a_run_is_not_settings(tmp_path: Path) -> None:
    """Protection above the run's directory does not apply to files below it; protection inside it does."""
    tree = tmp_path / ".pi" / "subagents" / "work" / "20260101" / "worktree"
    (tree / ".pi").mkdir(parents=True)
    assert decided("pi", asked("edit", "src/a.py"), tree, allow="edit(**)") == ALLOWED
    assert decided("pi", asked("edit", ".pi/settings.json"), tree, allow="edit(**)")[0] is None
    above = asked("edit", str(tmp_path / ".pi" / "settings.json"))
    assert decided("pi", above, tree, allow=f"edit({tmp_path}/**)")[0] is None


def test_runs_with_rules_ask_about_edits() -> None:
    """pi asks about edits in each run with rules, because some files are protected; without rules it asks nothing."""
    assert guarded_tools(Permissions(deny=("bash(rm *)",))) == ("bash", "edit", "write")
    assert guarded_tools(Permissions(allow=("read",))) == ("edit", "write")
    assert guarded_tools(None) == ()


# --- denials ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("read(my secret.txt)", "my\u00a0secret.txt"),
        ("read(my secret.txt)", "my\u3000secret.txt"),
        ("read(don't.txt)", "don\u2019t.txt"),
        ("read(don\u2019t.txt)", "don't.txt"),
        ("read(caf\u00e9)", "cafe\u0301"),
        ("read(cafe\u0301/**)", "caf\u00e9/x"),
        ("read(src/one/**)", "down/../x"),
        ("read(other/**)", "down/../../../other/x"),
    ],
)
def test_a_denied_name_is_denied_as_whatever_looks_like_it(project: Path, kind: str, rule: str, path: str) -> None:
    """A denied name covers all forms of spaces, quotes and accents, and `..` as kernels and as programs read it."""
    assert decided(kind, asked("read", path), project, deny=rule)[0] is Verdict.DENY


def test_a_denied_name_holds_where_case_does_not_count(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system that ignores case, a denial ignores case."""
    request = asked("edit", "SRC/Kept")
    assert decided("pi", request, project, deny="edit(src/k*)") == (None, "")
    monkeypatch.setattr(path_patterns, "folds_case", lambda place: True)
    assert decided("pi", request, project, deny="edit(src/k*)")[0] is Verdict.DENY


@pytest.mark.parametrize(
    "path", ["/proc/self/cwd/{name}", "/proc/thread-self/../self/root{project}/{name}", "/dev/fd/9/{name}"]
)
@pytest.mark.parametrize("way", ["", "link/", "link/../"])
def test_where_a_process_itself_leads_is_not_known(project: Path, path: str, way: str) -> None:
    """A path through a process's own links is covered by every deny rule, and by no allow rule."""
    (project / "link").symlink_to("/proc/self/cwd" if way == "link/" else "src")
    name = path.format(name="src/kept", project=project)
    asked_for = name if not way else f"{way}src/kept" if way == "link/" else f"{way}../../../../../../../../../{name}"
    for tool in ("read", "edit", "grep"):
        request = asked(tool, asked_for)
        assert decided("pi", request, project, deny=f"{tool}(other/**)")[0] is Verdict.DENY
        assert decided("pi", request, project, allow=f"{tool}(**)")[0] is None
        assert decided("pi", request, project, allow=f"{tool}(/**)")[0] is None


@pytest.mark.parametrize("tool", ["grep", "find", "ls"])
@pytest.mark.parametrize("rule", ["**/deep.key", "**/two/**", "src/*/two/x", "**/*.key", "*/one/**"])
def test_a_search_is_denied_above_what_is_denied(project: Path, tool: str, rule: str) -> None:
    """A denial with a star covers a search of each directory that may have such files below it."""
    for path in ("src/one", "src", ".", "", str(project)):
        request = asked(tool, *filter(None, (path,)))
        assert decided("pi", request, project, deny=f"{tool}({rule})") == (Verdict.DENY, f"{tool}({rule})"), path
    assert decided("pi", asked(tool, "src/kept"), project, deny=f"{tool}({rule})")[0] is None


def test_an_unclear_path_is_asked_about_where_paths_are_bounded(project: Path) -> None:
    """A path with several readings is never allowed by a default, nor by a rule for all calls."""
    request = asked("read", "file:///nowhere/x")
    rules = {"allow": "read", "deny": "read(secret/**)"}
    assert decided("pi", request, project, **rules) == (None, "unclear path")
    assert decided("pi", asked("read", "x"), project, **rules) == (Verdict.ALLOW, "read")
    assert decided("pi", request, project, ask="bash(rm *)") == (None, "")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:///a/b", "/a/b"),
        ("file://localhost/a", "/a"),
        ("file://l%6fcalhost/a%20b?c#d", "/a b"),
        ("file:///a/%2e%2E/b", "/b"),
        ("file:///a//../b", "/a/b"),
        ("file:\\\\\\a\\..\\b", "/b"),
        ("file:///C|/../../x", "/C:/x"),
        ("file:/a", "/a"),
        ("FILE:///a", "/a"),
        (" fi", None),
    ],
)
def test_paths_of_urls(url: str, path: str | None) -> None:
    """The path that a URL parser would read is among the checked ones."""
    assert path in of_file_url(url) if path else of_file_url(url) == ()


@pytest.mark.parametrize(
    ("pattern", "start"),
    [
        *(("**/*.py", ""), ("src/*", ""), ("/etc/*", "/etc/"), ("~/x", "~/x"), ("../x/*", "../x/")),
        *(("{..,a}/x", "/"), ("src/{../..,x}/y", "/"), ("{/etc,src}/*", "/"), (".\\./x", "/"), ("[.][.]/x", "/")),
        *(
            ("*.{ts,tsx}", ""),
            ("*.{test.ts,spec.ts}", ""),
            ("src/{a,b}/*.ts", ""),
            ("a/*/../b", "/"),
            ("{.,a}./x", "/"),
        ),
    ],
)
def test_where_a_pattern_of_names_begins(pattern: str, start: str) -> None:
    assert start_of_glob(pattern) == start


# --- any program ---


ENDS = ("", "@", "file://", "file:", "~", "\u00a0", " ", "./", "'", '"', "$HOME/")
PARTS = (
    "src",
    "out",
    "..",
    ".",
    "down",
    "up",
    "a",
    "outside",
    "project",
    "%2e%2e",
    "my\u00a0dir",
    "\u200b",
    "a'b",
    "x y",
)
FORMS = st.builds(
    lambda first, parts, last: first + "/".join(parts) + last,
    st.sampled_from(ENDS),
    st.lists(st.sampled_from(PARTS) | st.text(max_size=2), max_size=5),
    st.sampled_from(("", " ", "\u00a0", "'", '"')),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=FORMS, kind=st.sampled_from(sorted(KINDS)))
def test_what_any_program_may_open_lies_inside(project: Path, path: str, kind: str) -> None:
    """A path allowed as inside stays inside after any clean-up that programs do."""
    if decided(kind, asked("edit", path), project, allow="edit(src/**)")[0] is not Verdict.ALLOW:
        return
    cwd = os.path.realpath(project)
    plain = path.removeprefix("@") if kind == "pi" else path
    for opened in (os.path.join(cwd, plain), os.path.normpath(os.path.join(cwd, plain))):
        assert f"{os.path.realpath(opened)}/".startswith(f"{cwd}/src/"), opened
    if kind == "acp":
        assert path == path.strip(" \u00a0'\"@") and "%" not in path and not path.startswith(("~", "file:"))


def test_every_spelling_is_decided(project: Path) -> None:
    """Every spelling is decided for every agent, and a rule for all files allows none of git's files."""
    outside = project.parent / "outside"
    for kind in KINDS:
        for spelling in (*SPELLINGS, "", "\0", "\ud800", "x" * 5000, "/" * 5000):
            path = written(spelling, project, outside)
            request = asked("edit", path)
            decided(kind, request, project, deny="edit(a/**)", ask="edit(b/**)", allow="edit(**)")
            if decided(kind, request, project, allow="edit(**)")[0] is Verdict.ALLOW:
                plain = path.removeprefix("@") if kind == "pi" else path
                assert "/.git/" not in os.path.realpath(project / plain), path
