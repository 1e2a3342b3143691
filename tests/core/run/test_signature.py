"""The signature of a run, and its key."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from subdeck.core import paths
from subdeck.core.doctor import examine
from subdeck.core.errors import SubdeckError
from subdeck.core.run import signature

pytestmark = pytest.mark.processes

RUN = "20261122-120000-abcdef"
RECORD = b'{\n "runId": "20261122-120000-abcdef",\n "task": "look"\n}'


def key_file(home: Path) -> Path:
    return home / ".local" / "state" / "subdeck" / "key"


def test_a_marked_record_is_ones_own(home: Path) -> None:
    """A signed record is recognized, and stays the same JSON plus one field at its end."""
    record = signature.with_signature(RUN, RECORD)
    assert signature.Verifier().is_record_signed(RUN, record)
    assert record.startswith(RECORD.removesuffix(b"\n}"))
    assert record.endswith(b'"\n}')


@given(at=st.integers(0, 200), byte=st.integers(0, 255))
def test_any_changed_byte_breaks_it(at: int, byte: int) -> None:
    """A record with any changed byte is not trusted."""
    record = signature.with_signature(RUN, RECORD)
    at %= len(record)
    changed = record[:at] + bytes((byte,)) + record[at + 1 :]
    assert signature.Verifier().is_record_signed(RUN, changed) is (changed == record)


@pytest.mark.parametrize("more", [b"\n", b" ", b"x", b',\n "mark": "0"\n}'])
def test_nothing_may_follow_it(more: bytes) -> None:
    """Nothing may follow the signature."""
    assert not signature.Verifier().is_record_signed(RUN, signature.with_signature(RUN, RECORD) + more)


@given(record=st.binary(max_size=200))
def test_other_records_are_not_ones_own(record: bytes) -> None:
    """Arbitrary bytes never pass as signed."""
    signature.make_key()
    assert not signature.Verifier().is_record_signed(RUN, record)


def test_it_is_of_one_run(home: Path) -> None:
    """One run's record is not valid for another: a copied directory is untrusted."""
    assert not signature.Verifier().is_record_signed("20261122-120000-abcdee", signature.with_signature(RUN, RECORD))


def test_it_is_of_one_key(home: Path) -> None:
    """A record signed by another user is not trusted."""
    record = signature.with_signature(RUN, RECORD)
    key_file(home).write_bytes(bytes(32))
    signature.read_key()
    assert not signature.Verifier().is_record_signed(RUN, record)


def test_looking_makes_no_key(home: Path) -> None:
    """Without a key no record is trusted, and checking creates no key."""
    record = RECORD.removesuffix(b"\n}") + b',\n "mark": "' + b"0" * 32 + b'"\n}'
    assert signature.has_signature(record)
    assert not signature.Verifier().is_record_signed(RUN, record)
    assert not (home / ".local").exists()


def test_the_key_is_a_secret(home: Path) -> None:
    """The key is 32 bytes that only this user can read, in a private directory."""
    key = signature.make_key()
    status = key_file(home).stat()
    assert (32, 0o600, key) == (len(key), stat.S_IMODE(status.st_mode), key_file(home).read_bytes())
    assert 0o700 == stat.S_IMODE(key_file(home).parent.stat().st_mode)
    assert ["key"] == os.listdir(key_file(home).parent)


def test_one_place_whatever_xdg_says(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two launchers with different environments have the same key."""
    first = signature.make_key()
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "elsewhere"))
    assert first == signature.make_key()
    assert not (home / "elsewhere").exists()


def test_launchers_that_are_first_together_have_one_key(home: Path) -> None:
    """If several launchers make the key at the same moment, one wins and all have its key."""
    code = "import sys; from subdeck.core.run import signature; sys.stdin.read(); print(signature.make_key().hex())"
    started = [
        subprocess.Popen([sys.executable, "-P", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(6)
    ]
    for process in started:
        assert process.stdin
        process.stdin.close()
    keys = set()
    for process in started:
        assert process.stdout
        keys.add(process.stdout.read().strip())
        process.stdout.close()
        assert 0 == process.wait()
    assert {key_file(home).read_bytes().hex().encode()} == keys


def test_a_key_made_anew_is_taken_over(home: Path) -> None:
    """A process with an older key trusts the runs signed with the new one."""
    signature.make_key()
    key_file(home).unlink()
    code = (
        "import sys; from subdeck.core.run.signature import with_signature; "
        f"sys.stdout.buffer.write(with_signature({RUN!r}, {RECORD!r}))"
    )
    record = subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True).stdout
    assert signature.Verifier().is_record_signed(RUN, record)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_key_that_others_can_use_is_refused(home: Path, mode: int) -> None:
    """A key that other users can access is refused with the fix, and nothing is trusted until then."""
    record = signature.with_signature(RUN, RECORD)
    signature.make_key()
    key_file(home).chmod(mode)
    with pytest.raises(SubdeckError, match="other users can access it") as refused:
        signature.make_key()
    assert str(key_file(home)) == refused.value.where
    assert "chmod 600" in refused.value.hint
    key_file(home).chmod(0o600)
    assert signature.Verifier().is_record_signed(RUN, record)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_of_another_user_is_refused(home: Path) -> None:
    """A key owned by another user is refused, because that user may know it."""
    signature.make_key()
    os.chown(key_file(home), 65534, -1)
    with pytest.raises(SubdeckError, match="belongs to another user"):
        signature.read_key()


@pytest.mark.parametrize("length", [0, 31, 33, 4096])
def test_a_key_of_another_length_is_refused(home: Path, length: int) -> None:
    """An empty or cut key file is refused."""
    signature.make_key()
    key_file(home).write_bytes(b"k" * length)
    with pytest.raises(SubdeckError, match="it is not 32 bytes long"):
        signature.make_key()


def test_a_pipe_instead_of_the_key(home: Path) -> None:
    """A named pipe in place of the key is refused at once."""
    key_file(home).parent.mkdir(parents=True)
    os.mkfifo(key_file(home), 0o600)
    with pytest.raises(SubdeckError, match="not a regular file"):
        signature.read_key()


def test_no_writable_home(home: Path) -> None:
    """If the key cannot be used, the error names its file."""
    (home / ".local").write_text("a file where the directory should be")
    with pytest.raises(SubdeckError, match="cannot use the key") as refused:
        signature.make_key()
    assert paths.key_file() == refused.value.where


def test_a_home_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the home directory cannot be written, the error gives the consequence and the way out."""
    monkeypatch.setenv("HOME", "/proc/self/no-home")
    with pytest.raises(SubdeckError, match="cannot create the key") as refused:
        signature.make_key()
    assert "set HOME" in refused.value.hint
    assert "starts none" in refused.value.hint


def test_doctor_names_it(home: Path, project_dir: Path) -> None:
    """Doctor reports an unusable key before the first launch, and checking creates none."""

    def key_check() -> tuple[str, str, str]:
        (check,) = (check for check in examine(str(project_dir)) if check.name == "key")
        return check.state, check.detail, check.fix

    assert ("ok", f"{key_file(home)} is created by the first launch", "") == key_check()
    assert not key_file(home).exists()
    signature.make_key()
    assert ("ok", str(key_file(home)), "") == key_check()
    key_file(home).chmod(0o644)
    state, detail, fix = key_check()
    assert ("problem", True, True) == (state, "other users can access it" in detail, "chmod 600" in fix)


def test_checking_loads_no_openssl(home: Path) -> None:
    """Listing runs does not load OpenSSL."""
    record = signature.with_signature(RUN, RECORD)
    code = (
        "import sys; from subdeck.core.run.signature import Verifier; "
        f"assert Verifier().is_record_signed({RUN!r}, {record!r}); "
        "print(sorted({'hashlib', 'hmac', '_hashlib', 'ssl'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True)
    assert "[]" == done.stdout.strip()
