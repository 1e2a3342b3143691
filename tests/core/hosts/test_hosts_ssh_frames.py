"""How messages share one stream, and which host a run is offered to."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st
from subdeck.core.hosts._carrier import Link, Wish
from subdeck.core.hosts.protocol import MOST_MESSAGE
from subdeck.core.hosts.ssh._frames import (
    ANSWER,
    CANCEL,
    HEAD,
    MOST_FRAME,
    MOST_OPEN,
    PIECE,
    BadFrame,
    Frame,
    Incoming,
    Message,
    Outgoing,
    length,
    packed,
    unpacked,
)
from subdeck.core.hosts.ssh._line import command, why_ended
from subdeck.core.hosts.ssh.carrier import choose

from tests.fuzzed import fuzzed

pytestmark = pytest.mark.processes

CONTENTS = st.integers(0, 3 * PIECE).map(lambda size: random.Random(size).randbytes(size))


def sent(messages: Sequence[Message]) -> bytes:
    """Return the stream of messages that are sent at the same time."""
    outgoing = Outgoing()
    for message in messages:
        outgoing.put(message)
    stream = b""
    while outgoing:
        stream += packed(outgoing.take())
    return stream


def received(stream: bytes) -> list[Message]:
    """Return the messages of a stream, in order of completion. Raises BadFrame."""
    incoming, found = Incoming(), list[Message]()
    while len(stream) >= HEAD:
        size = length(stream[:HEAD])
        if len(stream) < HEAD + size:
            break
        message = incoming.add(unpacked(stream[HEAD : HEAD + size]))
        stream = stream[HEAD + size :]
        if message is not None:
            found.append(message)
    return found


@fuzzed
@given(st.lists(CONTENTS, max_size=6))
def test_what_is_sent_at_the_same_time_comes_whole(contents: list[bytes]) -> None:
    """Messages of any size, sent together, arrive unchanged."""
    messages = [Message(number, ANSWER, content) for number, content in enumerate(contents, 1)]
    assert messages == sorted(received(sent(messages)), key=lambda message: message.id)


def test_a_small_message_does_not_wait_for_a_large_one() -> None:
    """A small message overtakes a large one that was sent first."""
    first = received(sent([Message(1, ANSWER, bytes(20 * PIECE)), Message(2, ANSWER, b"small")]))[0]
    assert Message(2, ANSWER, b"small") == first


@fuzzed
@given(st.binary(max_size=400))
def test_any_bytes_are_frames_or_refused(stream: bytes) -> None:
    """Any received bytes are read, waited for, or refused as a bad frame."""
    try:
        received(stream)
    except BadFrame:
        pass


@fuzzed
@given(st.data())
def test_damaged_frames_are_read_or_refused(data: st.DataObject) -> None:
    """A damaged byte breaks only its connection."""
    stream = bytearray(sent([Message(1, "pull", bytes(100)), Message(2, "hold", bytes(PIECE + 5))]))
    place = data.draw(st.integers(0, len(stream) - 1))
    stream[place] = data.draw(st.integers(0, 255))
    try:
        received(bytes(stream))
    except BadFrame:
        pass


@pytest.mark.parametrize("size", [0, MOST_FRAME + 1, 2**32 - 1])
def test_a_frame_is_bounded(size: int) -> None:
    """An invalid frame length is refused before anything is read or kept for it."""
    with pytest.raises(BadFrame):
        length(size.to_bytes(4, "big"))


def test_a_message_is_bounded() -> None:
    """Endless pieces are refused above the size limit of a message."""
    incoming = Incoming()
    piece = Frame(1, "pull", bytes(PIECE), is_last=False)
    assert all(incoming.add(piece) is None for _ in range(MOST_MESSAGE // PIECE))
    with pytest.raises(BadFrame, match="too large"):
        incoming.add(piece)


def test_messages_without_end_are_counted() -> None:
    """Beginnings of more messages than may be open are refused."""
    incoming = Incoming()
    assert all(incoming.add(Frame(number, "pull", b"-", is_last=False)) is None for number in range(MOST_OPEN))
    with pytest.raises(BadFrame, match="too many"):
        incoming.add(Frame(MOST_OPEN, "pull", b"-", is_last=False))


def test_what_is_taken_back_is_sent_no_further() -> None:
    """The rest of a cancelled request is not sent, and its received part is dropped."""
    outgoing, incoming = Outgoing(), Incoming()
    outgoing.put(Message(1, "start", bytes(10 * PIECE)))
    assert incoming.add(outgoing.take()) is None
    outgoing.put(Message(1, CANCEL))
    assert Message(1, CANCEL) == incoming.add(outgoing.take())
    assert not outgoing
    outgoing.put(Message(1, "pull", b"new"))
    assert Message(1, "pull", b"new") == incoming.add(outgoing.take())


H1, H2 = Link("me@h1", "h1", 2), Link("me@h2", "h2", 4, {"gpu": 1})
LINKS = {link.key: link for link in (H1, H2)}


def test_a_run_goes_to_the_host_with_most_free_slots() -> None:
    """Tickets are spread by free slots, and none is requested if no slot is free."""
    held: list[tuple[Wish, str]] = []
    for number in range(7):
        wish = Wish(f"run-{number}")
        key = choose(wish, LINKS, held)
        if key is not None:
            held.append((wish, key))
    assert {"me@h1": 2, "me@h2": 4} == {key: [host for _, host in held].count(key) for key in LINKS}


def test_a_run_goes_where_its_host_and_needs_are() -> None:
    """A ticket goes only to its named host, and resources needed by one ticket are taken from others."""
    assert choose(Wish("a", host="me@h1"), LINKS, []) == "me@h1"
    assert choose(Wish("a", host="h3"), LINKS, []) is None
    needy = Wish("a", needs={"gpu": 1})
    assert choose(needy, LINKS, []) == "me@h2"
    assert choose(Wish("b", needs={"gpu": 1}), LINKS, [(needy, "me@h2")]) is None
    assert choose(Wish("c", host="me@h1", needs={"gpu": 1}), LINKS, []) is None


def test_the_command_line_is_fixed() -> None:
    """ssh cannot read a host as an option, and the remote command is always the same three words."""
    words = command("-oProxyCommand=x")
    assert ("--", "-oProxyCommand=x", "subdeck", "hosts", "agent") == words[words.index("--") :]


@pytest.mark.parametrize(
    ("code", "stderr", "said"),
    [
        (255, b"Welcome\nme@h1: Permission denied (publickey).\n", "me@h1: Permission denied (publickey)."),
        (
            255,
            b"ssh: connect to host h1 port 22: Connection refused\r\n",
            "connect to host h1 port 22: Connection refused",
        ),
        (255, b"", "me@h1: ssh lost the connection"),
        (127, b"bash: line 1: subdeck: command not found\n", "me@h1: subdeck is not installed there"),
        (2, b'subdeck: unknown command "hosts"\n  where: subdeck\n', "me@h1: subdeck is too old there"),
        (
            2,
            b"subdeck: another process uses this spool\n  where: /spool\n  hint: stop that agent\n",
            "me@h1: another process uses this spool; /spool; stop that agent",
        ),
        (0, b"", "me@h1: its subdeck process ended"),
        (1, b"\x1b[31mred\n", "me@h1: red"),
    ],
)
def test_what_ssh_says_is_told_in_words(code: int, stderr: bytes, said: str) -> None:
    """The reason why a host is unreachable is one line that names the host and a way out."""
    assert why_ended("me@h1", code, stderr).startswith(said)
