"""The command `subdeck web` and its subcommands."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.cli._web_pairing import qr_code
from subdeck.core.engine import Engine
from subdeck.core.web.devices import Devices

from tests.core.command_line import start, subdeck
from tests.core.talking import listening, permission

from .browsing import Browser

pytestmark = pytest.mark.processes


@contextmanager
def served(project_dir: Path, *words: str) -> Iterator[tuple[str, str, subprocess.Popen[bytes]]]:
    """Serve a project; yield origin, pairing link and process."""
    server = start("web", *words, cwd=project_dir)
    assert server.stdout
    try:
        serving, _, link = (server.stdout.readline().decode().split() for _ in range(3))
        assert serving, server.communicate()
        yield serving[3].removesuffix("."), link[0], server
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=30)


def test_a_device_is_paired_and_revoked(project_dir: Path) -> None:
    """The printed link pairs a device, which is listed until it is revoked; ctrl-C ends the page."""
    with served(project_dir, "--listen", "127.0.0.1:0") as (origin, link, server):
        assert link.startswith(f"{origin}/pair?code=")
        browser = Browser(int(origin.rpartition(":")[2]))
        browser.submit(browser.get(link.removeprefix(origin)), {"name": "My phone"})
        (device,) = subdeck("web", "devices", "--json", cwd=project_dir).document["devices"]
        assert ("My phone", "127.0.0.1") == (device["name"], device["address"])
        assert "My phone" in subdeck("web", "devices", cwd=project_dir).out
        new = subdeck("web", "pair", "--json", cwd=project_dir).document["url"]
        assert 200 == Browser(browser.port).get(new.removeprefix(origin)).status
        assert f"My phone ({device['id']}) is revoked\n" == subdeck("web", "revoke", "My phone", cwd=project_dir).out
        assert "No paired devices.\n" == subdeck("web", "devices", cwd=project_dir).out
        assert 401 == browser.get("/").status
        loaded = Path(f"/proc/{server.pid}/maps").read_text()
        assert "libssl" not in loaded  # 7 of 33 MB
    assert 0 == server.returncode


@pytest.mark.parametrize("listen", ["0.0.0.0", "192.168.1.5", "[::]:80"])  # noqa: S104
def test_other_machines_need_tls(project_dir: Path, listen: str) -> None:
    """Without a certificate only loopback is served."""
    done = subdeck("web", "--listen", listen, cwd=project_dir)
    assert (2, True) == (done.code, "needs TLS" in done.err)


def test_tls_with_an_own_certificate(project_dir: Path) -> None:
    """With `web keys` the page is served over TLS, under the names of its certificate."""
    made = subdeck("web", "keys", "localhost", "127.0.0.1", "--json", cwd=project_dir).document
    files = ("--cert", made["cert"], "--key", made["key"])
    with served(project_dir, "--listen", "127.0.0.1:0", *files) as (origin, _, _):
        assert origin.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=made["ca"])
        connection = HTTPSConnection("127.0.0.1", int(origin.rpartition(":")[2]), context=trusted, timeout=30)
        connection.request("GET", "/")
        assert 401 == connection.getresponse().status
        connection.close()
    again = subdeck("web", "keys", "localhost", cwd=project_dir)
    assert (2, True) == (again.code, "not overwritten" in again.err)
    for path in made.values():
        assert 0o600 == os.stat(path).st_mode & 0o777


def test_wrong_options_are_explained(project_dir: Path) -> None:
    """Each error names the option and the way out, before anything is served."""
    for words, said in (
        (["--cert", "x.pem"], "--key"),
        (["--cert", "x.pem", "--key", "y.pem"], "cannot use the certificate"),
        (["--origin", "box"], "is not an origin"),
        (["--listen", "a b"], "is not an address"),
    ):
        done = subdeck("web", *words, cwd=project_dir)
        assert (2, True) == (done.code, said in done.err), done.err
    with served(project_dir, "--listen", "127.0.0.1:0") as (origin, _, _):
        taken = subdeck("web", "--listen", origin.removeprefix("http://"), cwd=project_dir)
        assert (2, True) == (taken.code, "cannot listen" in taken.err)


def test_an_agent_serves_nothing(project_dir: Path) -> None:
    """An agent gets no page, no code and no link by these commands."""
    child = {paths.CHILD: "1"}
    for words in (["web"], ["web", "pair"], ["web", "link", "x"]):
        done = subdeck(*words, cwd=project_dir, **child)
        assert (2, True) == (done.code, "an agent cannot" in done.err)


def test_links_are_off(project_dir: Path, home: Path) -> None:
    """Without the setting no link is made; with it, one that shows the request."""
    engine = Engine.open(str(project_dir))
    with listening(engine.project, permission()) as run:
        refused = subdeck("web", "link", run.run_id, cwd=project_dir)
        assert (2, True) == (refused.code, "web.links" in refused.err)
        settings = home / ".config" / "subdeck" / "config.yaml"
        settings.parent.mkdir(parents=True)
        settings.write_text("web: {links: true}\n")
        assert "never started" in subdeck("web", "link", run.run_id, cwd=project_dir).err
        Devices().set_origin("/elsewhere", "http://127.0.0.1:8643")
        assert "never started" in subdeck("web", "link", run.run_id, cwd=project_dir).err
        Devices().set_origin(engine.project.root, "http://127.0.0.1:8642")
        made = subdeck("web", "link", run.run_id, "q1", "--json", cwd=project_dir).document["url"]
        link = Devices().link(made.rpartition("/")[2])
        assert link
        assert (run.run_id, "q1") == (link.run_id, link.request)


def test_missing_packages_are_named(project_dir: Path) -> None:
    """Without the extra, the error has the command that installs it."""
    code = (
        "import sys; sys.modules['tornado'] = None; sys.path_importer_cache.clear()\n"
        "from importlib import util; find = util.find_spec\n"
        "util.find_spec = lambda name, package=None: None if name == 'tornado' else find(name, package)\n"
        "from subdeck.tui.main import main; sys.argv[1:] = ['web', '--json']; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=project_dir, capture_output=True, text=True)
    assert (2, 'pip install "subdeck[web]"') == (done.returncode, json.loads(done.stderr)["error"]["hint"])


def test_the_qr_code_is_square() -> None:
    """Each line has two rows of modules, with a light border on each side."""
    lines = [*qr_code("http://127.0.0.1:8642/pair?code=ABCDEFGHIJKLMNOP")]
    assert {len(lines[0])} == {*map(len, lines)}
    assert len(lines) == (len(lines[0]) + 1) // 2
    assert not lines[0].strip()
    assert all(line.startswith("  ") and line.endswith("  ") for line in lines)
