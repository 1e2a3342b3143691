"""`subdeck connect` and `disconnect` change only our entry in the files of Claude Code and Codex."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from subdeck.core.errors import UsageError
from subdeck.core.mcp import _json_member
from subdeck.core.mcp.clients import CLAUDE, CODEX, client

from tests.core.command_line import SUBDECK

pytestmark = pytest.mark.processes

CLIENTS = (CLAUDE, CODEX)
BROKEN = "invalid"
KEYS = ("mcpServers", "subdeck")


def subdeck(*words: str, cwd: Path) -> Any:
    """Run the command; return its JSON document."""
    done = subprocess.run([*SUBDECK, *words, "--json"], cwd=cwd, capture_output=True, text=True, input="")
    return json.loads(done.stdout or done.stderr)


def user_file(name: str, home: Path) -> Path:
    path = home / ".claude.json" if name == CLAUDE else home / ".codex" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    return path


def entry_in(path: Path) -> Any:
    text = path.read_text()
    servers = tomllib.loads(text)["mcp_servers"] if path.suffix == ".toml" else json.loads(text)["mcpServers"]
    return servers["subdeck"]


@pytest.mark.parametrize("project", [(), ("--project",)], ids=["user", "project"])
@pytest.mark.parametrize("name", CLIENTS)
def test_there_and_back(name: str, project: tuple[str, ...], project_dir: Path, home: Path) -> None:
    """A missing file is created for the entry; a second install changes nothing; uninstall removes both."""
    installed = subdeck("connect", name, *project, cwd=project_dir)
    path = Path(installed["path"])
    assert path.is_relative_to(project_dir if project else home)
    entry = entry_in(path)
    assert (True, entry) == (installed["changed"], installed["entry"])
    assert "mcp" == entry["args"][-1]
    assert ("subdeck" == entry["command"]) == bool(project)
    before = path.read_bytes()
    assert not subdeck("connect", name, *project, cwd=project_dir)["changed"]
    assert before == path.read_bytes()
    assert {"path": str(path), "entry": None, "changed": True} == subdeck("disconnect", name, *project, cwd=project_dir)
    assert not path.exists()
    assert not subdeck("disconnect", name, *project, cwd=project_dir)["changed"]


def test_codex_lets_the_tools_through() -> None:
    """Without these values Codex does not wait for the tools, or refuses to call them."""
    entry = client(CODEX, project=None).entry
    assert (True, "approve") == (entry["required"], entry["default_tools_approval_mode"])
    assert entry["tool_timeout_sec"] >= 3600


def test_codex_passes_on_keys(home: Path, project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codex passes only named key variables to its servers.

    A name that is set here, or in the user's own providers, is only in the user's file.
    """
    monkeypatch.setenv("CORP_API_KEY", "sk-secret")
    user_file(CODEX, home).write_text('[model_providers.shop]\nenv_key = "SHOP_KEY"\n[model_providers.odd]\nx = 1\n')
    for name in ("connect", "disconnect", "connect"):
        written = subdeck(name, CODEX, cwd=project_dir)
    names = written["entry"]["env_vars"]
    assert {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "XDG_STATE_HOME", "CORP_API_KEY", "SHOP_KEY"} <= set(names)
    assert "sk-secret" not in user_file(CODEX, home).read_text()
    of_project = subdeck("connect", CODEX, "--project", cwd=project_dir)["entry"]["env_vars"]
    assert {"OPENAI_API_KEY"} == {"OPENAI_API_KEY", "CORP_API_KEY", "SHOP_KEY"} & set(of_project)


def test_what_somebody_has_codex_pass_on_stays(home: Path) -> None:
    """The user's own list stays in any form, even if the command is updated."""
    path = user_file(CODEX, home)
    own = 'env_vars = [\n  "MINE",\n]\n'
    path.write_text(f'[mcp_servers.subdeck]\n{own}command = "/old/subdeck"\nargs = ["mcp"]\n')
    assert client(CODEX, project=None).install().changed
    assert own in path.read_text()
    assert ["MINE"] == entry_in(path)["env_vars"]
    assert not client(CODEX, project=None).install().changed


JSONS = {
    "ours to come": '{\n  "numStartups": 7,\n  "tips": {"a": [1, 2]}\n}\n',
    "others": '{\n\t"mcpServers": {\n\t\t"other": {\n\t\t\t"command": "x"\n\t\t}\n\t},\n\t"last": null\n}',
    "one line": '{"a":1,"mcpServers":{"other":{"command":"x"}},"b":"}{\\""}',
    "none yet": '{"mcpServers": {}, "b": 1}',
    "nothing": "{}",
    "windows": '{\r\n    "a": 1,\r\n    "mcpServers": {\r\n        "other": {}\r\n    }\r\n}\r\n',
    "strange text": '{\n  "a": "\\ud83d",\n  "mcpServers2": {"subdeck": 1},\n  "ü": ["[", {"mcpServers": 3}]\n}\n',
}
TOMLS = {
    "ours to come": '# mine\nmodel = "o"  # why\n\n[profiles.x]\na = [\n  "[mcp_servers.subdeck]",\n]\n',
    "others": '[mcp_servers.other]\ncommand = "x"\n\n[mcp_servers.other.env]\nA = "1"\n',
    "comments": "# only words\n",
    "windows": 'model = "o"\r\n\r\n[tui]\r\nx = 1\r\n',
}
DOCUMENTS = [(CLAUDE, text) for text in JSONS.values()] + [(CODEX, text) for text in TOMLS.values()]


@pytest.mark.parametrize(
    ("name", "text"), DOCUMENTS, ids=[f"json {key}" for key in JSONS] + [f"toml {key}" for key in TOMLS]
)
def test_the_rest_stays_byte_for_byte(name: str, text: str, home: Path) -> None:
    """All other text in the file stays the same, with the entry and after its removal."""
    path = user_file(name, home)
    path.write_bytes(text.encode())
    path.chmod(0o640)
    assert client(name, project=None).install().changed
    assert entry_in(path)["args"][-1] == "mcp"
    lines = path.read_bytes().decode().splitlines()
    assert [] == [
        line for line in text.splitlines() if line.rstrip(",") not in [kept.rstrip(",") for kept in lines]
    ] or (len(text.splitlines()) == 1)
    assert not client(name, project=None).install().changed
    assert client(name, project=None).uninstall().changed
    assert text.encode() == path.read_bytes()
    assert 0o640 == path.stat().st_mode & 0o777


@pytest.mark.parametrize("name", CLIENTS)
def test_an_entry_of_an_older_installation_is_brought_up_to_date(name: str, home: Path) -> None:
    """A changed path is updated; the user's additions and changes stay."""
    path = user_file(name, home)
    if name == CLAUDE:
        entry = {"command": "/old/subdeck", "args": ["mcp"], "env": {"A": "1"}}
        path.write_text(json.dumps({"mcpServers": {"subdeck": entry, "other": {}}}, indent=2))
    else:
        path.write_text(
            '[mcp_servers.subdeck]\n# slow tasks\ntool_timeout_sec = 7200\ncommand = "/old/subdeck"\nargs = ["mcp"]\n'
            '\n[mcp_servers.subdeck.env]\nA = "1"\n\n# next\n[tui]\nx = 1\n'
        )
    assert client(name, project=None).install().changed
    entry = entry_in(path)
    assert client(name, project=None).entry["command"] == entry["command"]
    assert {"A": "1"} == entry["env"]
    assert name == CLAUDE or 7200 == entry["tool_timeout_sec"]
    assert not client(name, project=None).install().changed
    assert client(name, project=None).uninstall().changed
    left = path.read_text()
    assert "subdeck" not in left
    assert ("other" if name == CLAUDE else "# next\n[tui]\nx = 1\n") in left


def test_an_entry_by_name_is_left_as_it_is(home: Path) -> None:
    """An entry made by `claude mcp add` works with any options and stays unchanged; uninstall removes it."""
    path = user_file(CLAUDE, home)
    path.write_text('{"mcpServers": {"subdeck": {"type": "stdio", "command": "subdeck", "args": ["-C", "/x", "mcp"]}}}')
    before = path.read_bytes()
    assert not client(CLAUDE, project=None).install().changed
    assert before == path.read_bytes()
    client(CLAUDE, project=None).uninstall()
    assert {"mcpServers": {}} == json.loads(path.read_text())


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        (CLAUDE, '{"mcpServers": {"subdeck": {"command": "rm", "args": ["-rf", "/"]}}}', "does not start subdeck"),
        (CODEX, '[mcp_servers.subdeck]\nurl = "https://example.org"\n', "does not start subdeck"),
        (CLAUDE, '{"mcpServers": []}', "mcpServers is not an object"),
        (CLAUDE, '{"mcpServers": {"subdeck": 3}}', "mcpServers.subdeck is not an object"),
        (CLAUDE, "[1]", "the whole is not an object"),
        (CLAUDE, '{"a": 1', BROKEN),
        (CLAUDE, "// words\n{}", BROKEN),
        (CODEX, "a = \n", BROKEN),
        (CODEX, 'mcp_servers = "none"\n', "mcp_servers is not an object"),
        (CODEX, 'mcp_servers = { other = { command = "x" } }\n', "in its present form"),
        (CODEX, '[mcp_servers]\nsubdeck = { command = "/x/subdeck", args = ["mcp"] }\n', "in its present form"),
    ],
)
def test_what_cannot_be_edited_is_refused(name: str, text: str, what: str, home: Path) -> None:
    """A file that is broken, in another form, or with another program's entry is named and stays unchanged."""
    path = user_file(name, home)
    path.write_text(text)
    with pytest.raises(UsageError, match=what) as refused:
        client(name, project=None).install()
    assert str(path) == refused.value.where
    assert refused.value.hint
    assert text == path.read_text()


def test_text_that_is_none_is_refused(home: Path) -> None:
    """Bytes that are not UTF-8 are refused."""
    path = user_file(CLAUDE, home)
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(UsageError, match="UTF-8"):
        client(CLAUDE, project=None).install()


@pytest.mark.parametrize("name", CLIENTS)
def test_a_checkout_leads_nowhere_else(name: str, project_dir: Path, tmp_path: Path) -> None:
    """In a project a link, a pipe or a directory in place of the file is refused at once and stays unchanged."""
    here = client(name, project=str(project_dir))
    path, secret = Path(here.path), tmp_path / "secret"
    path.parent.mkdir(exist_ok=True)
    secret.write_text("{}" if name == CLAUDE else "")
    for make in (lambda: path.symlink_to(secret), lambda: os.mkfifo(path)):
        make()
        for action in (here.install, here.uninstall):
            with pytest.raises(UsageError):
                action()
        path.unlink()
    assert secret.read_text() in ("{}", "")
    path.mkdir()
    with pytest.raises(UsageError):
        here.install()


def test_a_linked_directory_in_a_checkout_is_refused(project_dir: Path, tmp_path: Path) -> None:
    """A linked `.codex` directory in a project is refused."""
    (tmp_path / "elsewhere").mkdir()
    (project_dir / ".codex").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="is a link"):
        client(CODEX, project=str(project_dir)).install()
    assert [] == os.listdir(tmp_path / "elsewhere")


def test_a_linked_file_of_the_user_stays_a_link(home: Path, tmp_path: Path) -> None:
    """Linked user settings are changed in the link's target."""
    real = tmp_path / "dotfiles.json"
    real.write_text('{"a": 1}')
    user_file(CLAUDE, home).symlink_to(real)
    client(CLAUDE, project=None).install()
    assert user_file(CLAUDE, home).is_symlink()
    assert "mcp" == entry_in(real)["args"][-1]


def test_places_of_the_clients_own_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables that move the clients' files move our entry."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "c"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "x"))
    places = [client(name, project=None).path for name in CLIENTS]
    assert [str(tmp_path / "c" / ".claude.json"), str(tmp_path / "x" / "config.toml")] == places


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("disconnect",), "CLIENT is missing"),
        (("connect", "cluade"), 'invalid CLIENT "cluade": expected pi, claude or codex'),
        (("mcp", "claude"), 'unexpected argument "claude"'),
        (("mcp", "--project"), "no option --project"),
    ],
)
def test_wrong_words(words: tuple[str, ...], what: str, project_dir: Path) -> None:
    """An incomplete command, or one with too many words, gets an explanation."""
    assert what in subdeck(*words, cwd=project_dir)["error"]["what"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    others=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), VALUES, max_size=4),
    servers=st.none() | st.dictionaries(st.sampled_from(("a", "b", "sub")), VALUES, max_size=3),
    indent=st.sampled_from((None, 1, 2, 4, "\t")),
    entry=st.fixed_dictionaries({"command": st.text(max_size=5)}),
)
def test_any_document_comes_back(others: Any, servers: Any, indent: Any, entry: Any) -> None:
    """Adding the entry to any document adds nothing else, and removing it restores the text."""
    document = {name: value for name, value in others.items() if name != "mcpServers"}
    if servers is not None:
        document["mcpServers"] = servers
    text = json.dumps(document, indent=indent)
    with_entry = _json_member.put(text, KEYS, entry)
    assert document | {"mcpServers": (servers or {}) | {"subdeck": entry}} == json.loads(with_entry)
    changed = _json_member.put(with_entry, KEYS, {"command": "other"})
    assert {"command": "other"} == json.loads(changed)["mcpServers"]["subdeck"]
    back = _json_member.take(changed, KEYS)
    assert text == back
