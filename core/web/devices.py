"""Paired devices, pairing codes and links: this user's, in one signed file that holds only hashes of their secrets."""

from __future__ import annotations

import os
import time
from base64 import b32encode
from collections.abc import Callable, Container, Iterable
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .. import paths
from ..run.signature import content_if_signed, signed
from ..system import files
from ..text.decoder import UNDECODABLE, decode
from ..text.plain import one_line

T = TypeVar("T")

LIFETIME_S = 300.0
"""Seconds until a pairing code or a link expires."""
NAME = 24
"""Characters of a device's name."""
MOST_DEVICES = 50
MOST_PROJECTS = 50
MOST_OPEN = 100
"""Unused codes or links; a further one replaces the oldest."""
SEEN_EVERY_S = 60.0
"""Seconds between two records of a device's last visit."""
_ABOUT = "devices of subdeck web"
_COOKIE_BYTES, _CODE_BYTES = 32, 10


class Device(Struct, frozen=True):
    """A paired browser."""

    id: str
    name: str
    cookie: str
    """Hash of its cookie."""
    paired_at: str
    seen_at: str
    address: str
    """Where it was last seen."""


class Link(Struct, frozen=True):
    """A link that replies to one request, once, without a paired device."""

    token: str
    """Hash of its token."""
    until: float
    """When it expires, in seconds since 1970."""
    run_id: str
    request: str


class _Code(Struct, frozen=True):
    code: str
    """Hash of the code."""
    until: float


class _Records(Struct, frozen=True, omit_defaults=True):
    devices: tuple[Device, ...] = ()
    codes: tuple[_Code, ...] = ()
    links: tuple[Link, ...] = ()
    origins: dict[str, str] = {}
    """By root of the project: where its page was last reached, such as `https://box:8642`; the last started is last."""


def hash_of(secret: str) -> str:
    """Return the hash under which a secret is kept. Secrets are random, so it needs no salt."""
    return paths.hex_digest(secret.encode("utf-8", "replace"), 64)


def request_link(origin: str, token: str) -> str:
    """Return the address of a link with this token."""
    return f"{origin}/link/{token}"


def request_page(origin: str, run_id: str, request: str = "") -> str:
    """Return the address of a run's page, or of the page of its request, for paired devices."""
    return f"{origin}/run/{run_id}{request and f'/{request}'}"


class Devices:
    """The file of devices. Several processes may use it: each change is made under its lock."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._path = paths.state_file("web", "devices")
        self._clock = clock
        self._read_from: tuple[int, int, int] | None = None
        self._last = _Records()

    def devices(self) -> tuple[Device, ...]:
        """Return the paired devices, the oldest first."""
        return self._records().devices

    @property
    def last_origin(self) -> str:
        """Where the last page was reached; empty if none was started."""
        return next(reversed(self._records().origins.values()), "")

    def origin_of(self, root: str) -> str:
        """Return where a project's page was last reached; empty if it was never started."""
        return self._records().origins.get(root, "")

    def set_origin(self, root: str, origin: str) -> None:
        """Record where a project's page is reached now. Raises OSError."""

        def add(records: _Records) -> tuple[_Records, None]:
            other_origins = [
                (project_root, where) for project_root, where in records.origins.items() if project_root != root
            ]
            return replace(records, origins=dict([*other_origins[1 - MOST_PROJECTS :], (root, origin)])), None

        self._change(add)

    def new_code(self) -> str:
        """Return a new pairing code. Raises OSError."""
        code = b32encode(os.urandom(_CODE_BYTES)).decode("ascii", "replace")

        def add(records: _Records) -> tuple[_Records, None]:
            codes = (*records.codes, _Code(hash_of(code), self._clock() + LIFETIME_S))
            return replace(records, codes=codes[-MOST_OPEN:]), None

        self._change(add)
        return code

    def pair(self, code: str, name: str, address: str) -> tuple[Device, str] | None:
        """Use a pairing code. Return the new device and its cookie; None if the code is wrong, used or expired."""
        cookie, offered = os.urandom(_COOKIE_BYTES).hex(), hash_of(code.strip().upper())

        def use(records: _Records) -> tuple[_Records, Device | None]:
            if all(record.code != offered for record in records.codes):
                return records, None
            now = paths.now_iso()
            free = _free_name(name, {device.name for device in records.devices})
            device = Device(os.urandom(3).hex(), free, hash_of(cookie), now, now, address)
            codes = tuple(record for record in records.codes if record.code != offered)
            return replace(records, devices=(*records.devices, device)[-MOST_DEVICES:], codes=codes), device

        device = self._change(use)
        return (device, cookie) if device else None

    def of_cookie(self, cookie: str) -> Device | None:
        """Return the device with this cookie."""
        offered = hash_of(cookie) if cookie else ""
        return next((device for device in self.devices() if device.cookie == offered), None)

    def note_visit(self, device: Device, address: str) -> None:
        """Record where and when a device was last seen; at most once a minute from the same address."""
        now = paths.iso_time(self._clock())
        is_recent = device.seen_at > paths.iso_time(self._clock() - SEEN_EVERY_S)
        if is_recent and device.address == address:
            return

        def visit(records: _Records) -> tuple[_Records, None]:
            devices = tuple(
                replace(record, seen_at=now, address=address) if record.id == device.id else record
                for record in records.devices
            )
            return replace(records, devices=devices), None

        self._change(visit)

    def revoke(self, ids: Iterable[str]) -> tuple[Device, ...]:
        """Remove these devices, and return the removed ones. Their cookies are worthless from now on."""
        gone = frozenset(ids)

        def remove(records: _Records) -> tuple[_Records, tuple[Device, ...]]:
            kept = tuple(device for device in records.devices if device.id not in gone)
            removed = tuple(device for device in records.devices if device.id in gone)
            return replace(records, devices=kept), removed

        return self._change(remove)

    def new_link(self, run_id: str, request: str) -> str:
        """Return the token of a new link to one request. Raises OSError."""
        token = os.urandom(_COOKIE_BYTES).hex()

        def add(records: _Records) -> tuple[_Records, None]:
            links = (*records.links, Link(hash_of(token), self._clock() + LIFETIME_S, run_id, request))
            return replace(records, links=links[-MOST_OPEN:]), None

        self._change(add)
        return token

    def link(self, token: str) -> Link | None:
        """Return the link with this token, which stays usable; None if it is used or expired."""
        offered = hash_of(token)
        return next((link for link in self._records().links if link.token == offered), None)

    def use_link(self, token: str) -> Link | None:
        """Use up the link with this token; None if it is used or expired."""
        offered = hash_of(token)

        def use(records: _Records) -> tuple[_Records, Link | None]:
            used = next((link for link in records.links if link.token == offered), None)
            return replace(records, links=tuple(link for link in records.links if link is not used)), used

        return self._change(use)

    def _records(self) -> _Records:
        """Return the current records, without expired codes and links; read again only if the file has changed."""
        try:
            status = os.stat(self._path)
        except OSError:
            return _Records()
        if self._read_from != (version := (status.st_ino, status.st_mtime_ns, status.st_size)):
            self._read_from, self._last = version, _read(self._path)
        return self._current(self._last)

    def _current(self, records: _Records) -> _Records:
        now = self._clock()
        latest = now + LIFETIME_S  # a clock that was set back makes nothing last longer
        codes = tuple(code for code in records.codes if now < code.until <= latest)
        links = tuple(link for link in records.links if now < link.until <= latest)
        return replace(records, codes=codes, links=links)

    def _change(self, change: Callable[[_Records], tuple[_Records, T]]) -> T:
        """Change the records under the lock. Raises OSError, and SubdeckError without a key."""
        files.make_private_directory(os.path.dirname(self._path))
        lock = files.open_lock(f"{self._path}.lock")
        try:
            files.lock(lock)
            before = _read(self._path)
            after, result = change(self._current(before))
            if after != before:
                files.write_whole(self._path, signed(_ABOUT, msgspec.json.encode(after)))
            return result
        finally:
            os.close(lock)


def _read(path: str) -> _Records:
    """Return the records of a file; none if it is missing, damaged, or not signed by this user."""
    content = content_if_signed(_ABOUT, files.content(path))
    try:
        return _Records() if content is None else decode(content, _Records)
    except UNDECODABLE:
        return _Records()


def _free_name(name: str, taken: Container[str]) -> str:
    """Return a name that no device has: `Phone`, `Phone 2`."""
    base_name = one_line(name, NAME) or "Device"
    number, free = 1, base_name
    while free in taken:
        number += 1
        free = f"{one_line(base_name, NAME - 1 - len(str(number)))} {number}"
    return free
