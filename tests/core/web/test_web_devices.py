"""Paired devices, pairing codes and links on disk."""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.web import devices as module
from subdeck.core.web.devices import LIFETIME_S, Device, Devices, hash_of


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def devices(clock: Clock) -> Devices:
    return Devices(clock)


def the_file() -> Path:
    return Path(paths.state_file("web", "devices"))


def paired(devices: Devices, name: str = "Phone") -> tuple[Device, str]:
    made = devices.pair(devices.new_code(), name, "10.0.0.7")
    assert made
    return made


def test_a_code_pairs_one_device_once(devices: Devices) -> None:
    """The device is found by its cookie, and the code is used up."""
    code = devices.new_code()
    assert devices.pair("WRONG", "Phone", "10.0.0.7") is None
    made = devices.pair(code, "Phone", "10.0.0.7")
    assert made
    device, cookie = made
    assert ("Phone", "10.0.0.7") == (device.name, device.address)
    assert device == Devices(devices._clock).of_cookie(cookie)
    assert devices.pair(code, "Phone", "10.0.0.7") is None
    assert None is devices.of_cookie("") is devices.of_cookie("x" * 64)


def test_a_code_expires(devices: Devices, clock: Clock) -> None:
    """After five minutes it pairs nothing, also if the clock was set back before."""
    code = devices.new_code()
    clock.now -= 1
    assert devices.pair(code, "Phone", "") is None
    code = devices.new_code()
    clock.now += LIFETIME_S
    assert devices.pair(code, "Phone", "") is None


def test_only_hashes_are_kept(devices: Devices) -> None:
    """No file of the user's state has a code, a cookie or a token, and other users can read none of them."""
    code = devices.new_code()
    _, cookie = paired(devices)
    token = devices.new_link("20261128-120000-abcdef", "q1")
    for path in the_file().parent.rglob("*"):
        content = path.read_bytes().lower()
        assert not [secret for secret in (code, cookie, token) if secret.lower().encode() in content]
        assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert 0o700 == stat.S_IMODE(the_file().parent.stat().st_mode)


@pytest.mark.parametrize("signature", ["0" * 32, "", "the old one"], ids=["made up", "none", "of another content"])
def test_a_file_that_subdeck_did_not_write_pairs_nothing(devices: Devices, signature: str) -> None:
    """Whoever can only write files cannot pair a device, and the next code starts a new file."""
    _, cookie = paired(devices)
    old, _, content = the_file().read_bytes().partition(b"\n")
    changed = content.replace(hash_of(cookie).encode(), hash_of("mine").encode())
    the_file().write_bytes((old if signature == "the old one" else signature.encode()) + b"\n" + changed)
    assert None is devices.of_cookie("mine") is devices.of_cookie(cookie)
    paired(devices)
    assert 1 == len(devices.devices())


def test_a_revoked_device_is_gone(devices: Devices) -> None:
    """Its cookie is worthless at once, in every process; the others stay."""
    (phone, cookie), (desktop, other) = paired(devices), paired(devices, "Desktop")
    server = Devices(devices._clock)
    assert server.of_cookie(cookie)
    assert (phone,) == devices.revoke([phone.id, "nosuch"])
    assert server.of_cookie(cookie) is None
    assert desktop == server.of_cookie(other)


def test_names_differ(devices: Devices) -> None:
    """Devices with the same name get numbers, and control characters or line breaks are dropped."""
    names = [paired(devices, name)[0].name for name in ("Phone", "Phone", "a\n\x1b[31mb", "", "x" * 99, "x" * 99)]
    assert ["Phone", "Phone 2", "a b", "Device", "x" * 23 + "…", "x" * 21 + "… 2"] == names


def test_a_link_is_used_once(devices: Devices, clock: Clock) -> None:
    """Looking at it leaves it usable; it is for one request, and expires."""
    token = devices.new_link("20261128-120000-abcdef", "q1")
    for _ in range(3):
        assert (link := devices.link(token))
        assert ("20261128-120000-abcdef", "q1") == (link.run_id, link.request)
    assert devices.use_link(token)
    assert None is devices.use_link(token) is devices.link(token)
    token = devices.new_link("20261128-120000-abcdef", "q1")
    clock.now += LIFETIME_S
    assert None is devices.link(token) is devices.use_link(token)


def test_a_code_used_at_the_same_moment_pairs_one_device(devices: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several browsers with the same code one is paired: nobody reads the file while another one changes it."""
    code, made = devices.new_code(), []
    start, read = threading.Barrier(4), module._read
    together = threading.Barrier(2)

    def read_together(path: str) -> object:
        found = read(path)
        with suppress(threading.BrokenBarrierError):
            together.wait(0.05)  # with the lock, no other one comes
        return found

    monkeypatch.setattr(module, "_read", read_together)

    def pair() -> None:
        start.wait()
        made.append(Devices(devices._clock).pair(code, "Phone", ""))

    threads = [threading.Thread(target=pair) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 == len([one for one in made if one])
    assert 1 == len(devices.devices())


def test_a_visit_is_recorded_once_a_minute(devices: Devices, clock: Clock) -> None:
    """Each request of a browser would otherwise write the file."""
    device, cookie = paired(devices)
    devices.note_visit(device, "10.0.0.9")
    seen = devices.of_cookie(cookie)
    assert seen
    assert "10.0.0.9" == seen.address
    before = os.stat(the_file()).st_ino
    devices.note_visit(seen, "10.0.0.9")
    assert before == os.stat(the_file()).st_ino
    clock.now += 61
    devices.note_visit(seen, "10.0.0.9")
    assert before != os.stat(the_file()).st_ino
