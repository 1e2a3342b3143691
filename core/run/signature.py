"""The signature that identifies the runs made by a user's subdeck.

It is the last field of `meta.json`: a hash of the run's id and of all bytes before the field, keyed by a secret of the
user. A checkout, an archive or another user can bring a directory that looks like a run, but not its signature.
"""

from __future__ import annotations

import os
import stat

from .. import paths
from ..errors import SubdeckError
from ..system import files

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from hashlib import blake2b
    from typing import Any

KEY_BYTES = 32
_DIGEST_BYTES = 16
_PURPOSE = b"subdeck run mark"
_FIELD = b',\n "mark": "'
_END = b'"\n}'
_FIELD_AT = len(_FIELD) + 2 * _DIGEST_BYTES + len(_END)
"""Bytes from the beginning of the field to the end of the file."""


def with_signature(run_id: str, record: bytes) -> bytes:
    """Return a run's record, formatted as by `msgspec.json.format(…, indent=1)`, with the signature as its last field.

    Creates the key if there is none. Raises SubdeckError if that fails.
    """
    head = record.removesuffix(b"\n}")
    return b"%b%b%b%b" % (head, _FIELD, _signature(_keyed(make_key()), run_id, head), _END)


def signed(subject: str, content: bytes) -> bytes:
    """Return a signed file of this user that is not a run: a line with its signature, then the content. `subject` names
    the file, and must not be a run id. Creates the key if there is none. Raises SubdeckError if that fails.
    """
    return b"%b\n%b" % (_signature(_keyed(make_key()), subject, content), content)


def signature_of(subject: str, content: bytes) -> str:
    """Return only the signature of such content. Raises as `signed` does."""
    return _signature(_keyed(make_key()), subject, content).decode("ascii", "replace")


def content_if_signed(subject: str, file: bytes) -> bytes | None:
    """Return the content of a file that `signed` made for this user; None for any other file, or if the key is
    unusable.
    """
    signature, _, content = file.partition(b"\n")
    try:
        key = read_key() if len(signature) == 2 * _DIGEST_BYTES else None
    except SubdeckError:
        return None
    return content if key is not None and signature == _signature(_keyed(key), subject, content) else None


class Verifier:
    """Verifies signatures; the key is read once, at the first signed record."""

    _user = -1
    """The last owner that was this user."""
    _keyed: blake2b | None = None
    _is_read = False

    def is_record_signed(self, run_id: str, record: bytes) -> bool:
        """Return whether a record has this user's signature for that run id; False if the key is unusable."""
        keyed = self._keyed_hash() if has_signature(record) else None
        if keyed is None:
            return False
        head = memoryview(record)[:-_FIELD_AT]
        return record.startswith(_signature(keyed, run_id, head), len(record) - _FIELD_AT + len(_FIELD))

    def is_signed(self, subject: str, content: bytes, signature: str) -> bool:
        """Return whether `signature_of` made this signature for this user."""
        keyed = self._keyed_hash() if len(signature) == 2 * _DIGEST_BYTES else None
        return keyed is not None and signature.encode("ascii", "replace") == _signature(keyed, subject, content)

    def is_own(self, run_id: str, record: bytes, owner: int) -> bool:
        """Return whether a record is signed like that, in a directory of this user."""
        if owner != self._user and paths.is_own(owner):
            self._user = owner
        return owner == self._user and self.is_record_signed(run_id, record)

    def _keyed_hash(self) -> blake2b | None:
        if not self._is_read:
            self._is_read = True
            key = _usable_key()
            self._keyed = None if key is None else _keyed(key)
        return self._keyed


def _usable_key() -> bytes | None:
    try:
        return read_key()
    except SubdeckError:
        return None


def has_signature(record: bytes) -> bool:
    """Return whether a record has a signature, valid or not."""
    return record.endswith(_END) and record.startswith(_FIELD, max(0, len(record) - _FIELD_AT))


def make_key() -> bytes:
    """Return this user's key, created if there is none. Raises SubdeckError, with a hint."""
    path = paths.key_file()
    key = read_key()
    if key is None:
        try:
            files.make_private_directory(os.path.dirname(path))
            _write_key(path)
        except OSError as error:
            raise _unmakable(error.strerror or str(error)) from error
        key = read_key()
    if key is None:
        raise _unusable("it was removed right after its creation", "try again")
    return key


def check_key() -> None:
    """Raise the SubdeckError that `make_key` would raise, if it can be predicted without creating anything."""
    if read_key() is not None:
        return
    nearest = os.path.dirname(paths.key_file())
    while not os.path.lexists(nearest):
        nearest = os.path.dirname(nearest)
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise _unmakable(f"{nearest} is not writable")


def read_key() -> bytes | None:
    """Return this user's key; None if there is none. Raises SubdeckError if it is unusable."""
    path = paths.key_file()
    try:
        descriptor, status = files.open_regular(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(
            error.strerror or str(error), "check its permissions and those of its parent directories"
        ) from error
    try:
        if not paths.is_own(status.st_uid):
            raise _unusable("it belongs to another user", "run subdeck as that user, or with your own HOME")
        if stat.S_IMODE(status.st_mode) & 0o077:
            what = f"other users can access it (mode {stat.S_IMODE(status.st_mode):04o})"
            raise _unusable(
                what,
                f"if no other user has read it: chmod 600 {path}; otherwise remove it and trust your runs "
                "again (subdeck adopt)",
            )
        key = os.read(descriptor, KEY_BYTES + 1)
    except OSError as error:
        raise _unusable(error.strerror or str(error), "check the disk") from error
    finally:
        os.close(descriptor)
    if len(key) != KEY_BYTES:
        raise _unusable(f"it is not {KEY_BYTES} bytes long", "remove it, and trust your runs again (subdeck adopt)")
    return key


def _write_key(path: str) -> None:
    """Write a new key unless another process was first; the lock serves file systems without links."""
    descriptor = files.open_directory(os.path.dirname(path))
    try:
        files.lock(descriptor)
        files.write_new(path, os.urandom(KEY_BYTES), durable=True)
    except FileExistsError:
        return
    finally:
        os.close(descriptor)


def new_hash(**options: Any) -> blake2b:
    """Begin a hash; the options are those of `hashlib.blake2b`."""
    try:
        from _blake2 import blake2b  # the same as in hashlib, which loads OpenSSL, 9 ms
    except ImportError:
        from hashlib import blake2b
    return blake2b(**options)


def _keyed(key: bytes) -> blake2b:
    return new_hash(key=key, digest_size=_DIGEST_BYTES, person=_PURPOSE)


def _signature(keyed: blake2b, run_id: str, head: bytes | memoryview) -> bytes:
    signed = keyed.copy()
    signed.update(f"{run_id}\n".encode("utf-8", "surrogateescape"))
    signed.update(head)
    return signed.hexdigest().encode()


def _unmakable(why: str) -> SubdeckError:
    return SubdeckError(
        f"cannot create the key that signs your runs: {why}",
        where=paths.key_file(),
        hint="set HOME to a writable directory; without the key, subdeck cannot tell your runs from "
        "runs that came with a checkout, so it starts none",
    )


def _unusable(what: str, hint: str) -> SubdeckError:
    return SubdeckError(f"cannot use the key that signs your runs: {what}", where=paths.key_file(), hint=hint)
