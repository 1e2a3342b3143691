"""One attempt: the user's command with a time limit, and a request to the user's address."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from subdeck.core.alerts.spool import Document
from subdeck.core.config.notification_settings import Notifications
from subdeck.core.errors import SettingsError
from subdeck.core.notify._channels import attempt, outgoing, post, read_headers, run

from tests.factories import lives, pid_in, wait_until_gone
from tests.waiting import wait_until

from .receiver import RESET, TIMEOUT, receiving

pytestmark = pytest.mark.processes

DOCUMENT = Document(id="r1.q1", title="a title", text="a text")


def script(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code)


def test_a_command_gets_one_document(tmp_path: Path) -> None:
    """The command gets the JSON document on stdin, however long, and no shell is involved."""
    log = tmp_path / "it's $(a log)"
    argv = (*script("import sys; open(sys.argv[1], 'w').write(sys.stdin.read())"), str(log))
    assert "" == run(argv, b'{"text": "' + b"x" * 1_000_000 + b'"}')
    assert 1_000_012 == log.stat().st_size


@pytest.mark.parametrize(
    ("argv", "fault"),
    [
        (script("import sys; print('no bus', file=sys.stderr); sys.exit(3)"), "exited with code 3: no bus"),
        (script("import os; os.kill(os.getpid(), 9)"), "was killed by SIGKILL"),
        (("/nowhere/my-notify",), "cannot start /nowhere/my-notify: No such file or directory"),
        (("a\0b",), "cannot start"),
    ],
)
def test_a_command_that_fails(argv: tuple[str, ...], fault: str) -> None:
    """The reason for a failure is in one line."""
    assert fault in run(argv, b"{}")


def test_a_command_has_a_time_limit(tmp_path: Path) -> None:
    """A command that takes too long is killed with its process group."""
    pid = tmp_path / "pid"
    code = f"import os, time\nif not os.fork(): open({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(1000)"
    assert "took longer than 0.5 s" in run(script(code), b"{}", 0.5)
    wait_until_gone(pid_in(pid))


def test_nothing_of_a_command_stays(tmp_path: Path) -> None:
    """Background processes of a command end with it."""
    pid = tmp_path / "pid"
    code = (
        f"import os, time\nchild = os.fork()\nif not child: time.sleep(1000)\nopen({str(pid)!r}, 'w').write(str(child))"
    )
    assert "" == run(script(code), b"{}")
    wait_until(lambda: not lives(pid_in(pid)), "the background process to be gone")


def test_an_address_gets_one_document(tmp_path: Path) -> None:
    """The address gets the document, its id as a header, and the secret headers of the user's file."""
    headers = tmp_path / "headers"
    headers.write_text("# my server\nAuthorization: Bearer abc\n\nX-Team:  deck \n")
    headers.chmod(0o600)
    with receiving() as receiver:
        settings = Notifications(url=receiver.url, headers_file=str(headers))
        assert "" == attempt("url", settings, DOCUMENT)
    (one,) = receiver.received
    assert ("/agents", "r1.q1", {"id": "r1.q1", "title": "a title", "text": "a text"}) == (one.path, one.key, one.body)
    sent = {name: one.headers[name] for name in ("Authorization", "X-Team", "Content-Type")}
    assert {"Authorization": "Bearer abc", "X-Team": "deck", "Content-Type": "application/json"} == sent


def test_an_ntfy_topic(tmp_path: Path) -> None:
    """For ntfy the last part of the address is the topic, and the message goes to the server's own address."""
    with receiving() as receiver:
        settings = Notifications(url=f"{receiver.url}/deep/topic/", format="ntfy")
        assert "" == attempt("url", settings, DOCUMENT)
    (one,) = receiver.received
    assert ("/agents/deep/", "topic", "a title") == (one.path, one.body["topic"], one.body["title"])


@pytest.mark.parametrize(
    ("answer", "fault"),
    [(500, "status 500"), (404, "status 404"), (302, "a redirect, which is not followed"), (RESET, "no answer from")],
)
def test_an_address_that_fails(answer: int, fault: str) -> None:
    """Any answer but success is a failure; a redirect is not followed."""
    with receiving(lambda _: answer) as receiver:
        assert fault in post(outgoing(Notifications(url=receiver.url), DOCUMENT))
    assert ["/agents"] == [one.path for one in receiver.received]


def test_an_address_has_a_time_limit() -> None:
    """A server that does not answer is left after the time limit; one that cannot be reached fails at once."""
    with receiving(lambda _: TIMEOUT) as receiver:
        assert "no answer from 127.0.0.1" in post(outgoing(Notifications(url=receiver.url), DOCUMENT), 0.2)
        url = receiver.url
        receiver.is_closing.set()
    assert "cannot connect to 127.0.0.1" in post(outgoing(Notifications(url=url), DOCUMENT))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_secret_headers_are_secret(tmp_path: Path, mode: int) -> None:
    """A file of headers that others can access is refused, and nothing is sent."""
    headers = tmp_path / "headers"
    headers.write_text("Authorization: Bearer abc\n")
    headers.chmod(mode)
    with pytest.raises(SettingsError, match="other users can access"):
        read_headers(str(headers))
    with receiving() as receiver:
        assert "other users" in attempt("url", Notifications(url=receiver.url, headers_file=str(headers)), DOCUMENT)
    assert [] == receiver.received


@pytest.mark.parametrize("line", ["no colon", ": no name", "Bad Name: x", "X: a\x00b", "Ü: x"])
def test_headers_are_checked(tmp_path: Path, line: str) -> None:
    """A line that is not a header is an error with its number; it can never add a second header."""
    headers = tmp_path / "headers"
    headers.write_text(f"A: b\n{line}\n")
    headers.chmod(0o600)
    with pytest.raises(SettingsError) as error:
        read_headers(str(headers))
    assert f"{headers}:2" == error.value.where
