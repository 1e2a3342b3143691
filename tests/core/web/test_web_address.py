"""The addresses and names under which the page is served."""

from __future__ import annotations

import pytest
from subdeck.core.errors import UsageError
from subdeck.core.web._attempts import IN_ALL, PER_ADDRESS, WINDOW_S, Attempts
from subdeck.core.web.address import PORT, Address, listen_address, proxied_origin, served


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1", Address("127.0.0.1", PORT)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("[::1]:9000", Address("::1", 9000)),
        ("[::1]", Address("::1", PORT)),
        ("9000", Address("127.0.0.1", 9000)),
        (":9000", Address("127.0.0.1", 9000)),
        ("box.lan:443", Address("box.lan", 443)),
    ],
)
def test_an_address_is_read(text: str, address: Address) -> None:
    """It may have a host, a port, or both."""
    assert address == listen_address(text)


@pytest.mark.parametrize("text", ["", "a b", "127.0.0.1:99999", "http://box", "[::1", "box/x", "1.2.3.4:x"])
def test_anything_else_is_refused(text: str) -> None:
    """The error names the option and an example."""
    with pytest.raises(UsageError, match="--listen"):
        listen_address(text)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "::1"])
def test_loopback_is_recognized(host: str) -> None:
    """Only loopback may be served without TLS."""
    assert Address(host, 1).is_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "127.0.0.1.evil.example", "localhost.example"])  # noqa: S104
def test_other_addresses_are_not_loopback(host: str) -> None:
    """A name that only begins like loopback is not loopback."""
    assert not Address(host, 1).is_loopback


def test_only_served_names_are_answered() -> None:
    """A name counts with its port, or without it if that is the usual one; upper case does not matter."""
    names = served(Address("127.0.0.1", 8642), is_tls=False, proxied=[proxied_origin("https://Box.example.ts.net")])
    assert "http://127.0.0.1:8642" == str(names.of_host("127.0.0.1:8642"))
    assert "http://localhost:8642" == str(names.of_host("LOCALHOST:8642"))
    for host in ("box.example.ts.net", "box.example.ts.net:443"):
        assert "https://box.example.ts.net" == str(names.of_host(host))
    for host in ("", "127.0.0.1", "evil.example:8642", "127.0.0.1:8642.evil.example", "box.example.ts.net:8642"):
        assert names.of_host(host) is None
    assert names.first.is_proxied


def test_an_address_without_a_name_needs_one() -> None:
    """All addresses of a machine are no name that a browser sends."""
    with pytest.raises(UsageError, match="--origin"):
        served(Address("0.0.0.0", 8642), is_tls=True)  # noqa: S104
    assert served(Address("::", 8642), is_tls=True, proxied=[proxied_origin("https://box:8642")]).of_host("box:8642")


@pytest.mark.parametrize("text", ["box", "ftp://box", "https://box/path", "https://a b", "https://user@box"])
def test_an_origin_is_scheme_and_name(text: str) -> None:
    """Anything else is an error."""
    with pytest.raises(UsageError, match="--origin"):
        proxied_origin(text)


def test_attempts_are_limited() -> None:
    """An address has five attempts a minute, all together have twenty."""
    now = [0.0]
    attempts = Attempts(lambda: now[0])
    assert [0] * PER_ADDRESS == [attempts.wait_s("a") for _ in range(PER_ADDRESS)]
    assert WINDOW_S == attempts.wait_s("a")
    rest = IN_ALL - PER_ADDRESS
    assert [0] * rest == [attempts.wait_s(f"b{number}") for number in range(rest)]
    now[0] = 10.0
    assert WINDOW_S - 10 == attempts.wait_s("c")
    now[0] = WINDOW_S
    assert 0 == attempts.wait_s("a")
