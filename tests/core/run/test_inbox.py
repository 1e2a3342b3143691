"""The inbox of a run: files written whole by senders, each taken once by the wrapper until the inbox is closed."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.run.inbox import EntryKind, Inbox, InboxClosed, put
from subdeck.core.run.model import Verdict
from subdeck.core.run.signature import Verifier, with_signature


@pytest.fixture
def run_dir(tmp_path: Path) -> str:
    (tmp_path / paths.INBOX).mkdir()
    return str(tmp_path)


def test_entries_come_in_their_order_and_once(run_dir: str) -> None:
    """Entries are taken once, in the order of sending, with their sender."""
    first = put(run_dir, EntryKind.MESSAGE, by="operator", text="only the tokenizer")
    second = put(run_dir, EntryKind.REPLY, by="operator", request="q1", verdict=Verdict.ALLOW)
    inbox = Inbox(run_dir)
    assert [first, second] == inbox.take()
    assert [] == inbox.take()
    third = put(run_dir, EntryKind.INTERRUPT, by="pi")
    assert [third] == inbox.take()


def test_only_this_user_can_read_what_was_sent(run_dir: str) -> None:
    put(run_dir, EntryKind.MESSAGE, by="operator", text="a secret")
    (path,) = Path(run_dir, paths.INBOX).iterdir()
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)


def test_a_settled_entry_is_gone(run_dir: str) -> None:
    """An entry stays in the inbox until it is settled, so that it survives the death of the wrapper."""
    entry = put(run_dir, EntryKind.MESSAGE, by="operator", text="hello")
    inbox = Inbox(run_dir)
    inbox.take()
    assert 1 == len(os.listdir(Path(run_dir, paths.INBOX)))
    assert [entry] == Inbox(run_dir).take()
    inbox.settle(entry.id)
    assert [] == os.listdir(Path(run_dir, paths.INBOX))


def test_nothing_gets_into_a_closed_inbox(run_dir: str) -> None:
    """Closing returns the entries not yet taken; later senders are refused and leave nothing behind."""
    inbox = Inbox(run_dir)
    entry = put(run_dir, EntryKind.MESSAGE, by="operator", text="just in time")
    assert [entry] == inbox.close()
    with pytest.raises(InboxClosed):
        put(run_dir, EntryKind.MESSAGE, by="operator", text="too late")
    assert [paths.CLOSED_INBOX] == os.listdir(run_dir)
    inbox.discard()
    assert [] == os.listdir(run_dir)


def test_senders_at_the_moment_of_closing(run_dir: str) -> None:
    """Each message sent while the inbox closes is either refused or taken."""
    accepted: list[str] = []

    def send(number: int) -> None:
        try:
            accepted.append(put(run_dir, EntryKind.MESSAGE, by="operator", text=str(number)).text)
        except InboxClosed:
            return

    senders = [threading.Thread(target=send, args=(number,)) for number in range(40)]
    for sender in senders[:20]:
        sender.start()
    inbox = Inbox(run_dir)
    taken = inbox.take()
    for sender in senders[20:]:
        sender.start()
    taken += inbox.close()
    for sender in senders:
        sender.join()
    assert sorted(accepted) == sorted(entry.text for entry in taken)


def test_a_directory_of_another_run_is_not_written_to(tmp_path: Path) -> None:
    """A run of an earlier version has no inbox, and none is made for it."""
    with pytest.raises(InboxClosed):
        put(str(tmp_path), EntryKind.MESSAGE, by="operator", text="hello")
    assert [] == os.listdir(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"[1]", id="no entry"),
        pytest.param(b'{"id":"0123456789ab","kind":7}', id="kind of another type"),
        pytest.param(b'{"id":"ba9876543210","kind":"message"}', id="id of another entry"),
        pytest.param(b"\xff" * 100, id="no text"),
    ],
)
def test_what_is_no_entry_is_passed_over(run_dir: str, content: bytes) -> None:
    """Broken files do not block other entries, and are not read again."""
    Path(run_dir, paths.INBOX, f"{1:020d}-0123456789ab.json").write_bytes(content)
    entry = put(run_dir, EntryKind.MESSAGE, by="operator", text="hello")
    inbox = Inbox(run_dir)
    assert [entry] == inbox.take()
    assert [] == inbox.take()


def test_who_has_no_key_sends_nothing(run_dir: str, tmp_path: Path) -> None:
    """An entry that an agent forges, or copies from another run, is not accepted."""
    entry = put(run_dir, EntryKind.REPLY, by="operator", request="q1", verdict=Verdict.DENY)
    (sent,) = Path(run_dir, paths.INBOX).iterdir()
    forged = sent.read_bytes().replace(b'"deny"', b'"allow"')
    assert forged != sent.read_bytes()
    other = tmp_path / "other"
    for directory, content in ((run_dir, forged), (str(other), sent.read_bytes())):
        Path(directory, paths.INBOX).mkdir(parents=True, exist_ok=True)
        Path(directory, paths.INBOX, sent.name).write_bytes(content)
        assert [] == Inbox(directory).take()
    plain = f'{{"id":"{entry.id}","kind":"reply","by":"operator","request":"q1","verdict":"allow"}}'
    sent.write_text(plain)
    assert [] == Inbox(run_dir).take()


def test_what_is_no_file_is_passed_over(run_dir: str) -> None:
    """A named pipe with an entry's name does not block the reader."""
    os.mkfifo(Path(run_dir, paths.INBOX, f"{1:020d}-0123456789ab.json"))
    assert [] == Inbox(run_dir).take()


def test_a_copy_of_an_entry_is_none(run_dir: str) -> None:
    """An entry is taken once, even if the agent puts a copy of it back."""
    entry = put(run_dir, EntryKind.REPLY, by="operator", request="q1", verdict=Verdict.ALLOW)
    (sent,) = Path(run_dir, paths.INBOX).iterdir()
    content = sent.read_bytes()
    early = sent.with_name(f"{1:020d}-{entry.id}.json")
    early.write_bytes(content)
    inbox = Inbox(run_dir)
    assert [entry] == inbox.take()
    inbox.settle(entry.id)
    late = sent.with_name(f"{2:020d}-{entry.id}.json")
    late.write_bytes(content)
    assert [] == inbox.take() == inbox.close()


def test_the_mark_of_an_entry_is_for_nothing_else(tmp_path: Path) -> None:
    """The signature of an entry is not valid for a record, nor a record's for an entry."""
    run_dir = tmp_path / "20260101-000000-abcdef"
    (run_dir / paths.INBOX).mkdir(parents=True)
    put(str(run_dir), EntryKind.MESSAGE, by="operator", text="hello")
    (sent,) = (run_dir / paths.INBOX).iterdir()
    content = sent.read_bytes()
    assert not Verifier().is_record_signed(run_dir.name, content)
    sent.write_bytes(with_signature(run_dir.name, content[: content.rindex(b",")] + b"\n}"))
    assert [] == Inbox(str(run_dir)).take()
