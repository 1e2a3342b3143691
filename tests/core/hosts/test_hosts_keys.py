"""The certificates of a cluster, and the effective hosts."""

from __future__ import annotations

import os
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from msgspec.structs import replace
from subdeck.core.config.effective_hosts import (
    TryCluster,
    effective_hosts,
    kept_cluster,
    keys_dir,
    keys_in,
    publish,
    tls_paths,
    try_file,
)
from subdeck.core.config.host_settings import HostsSettings, TlsFiles, is_address, is_loopback
from subdeck.core.errors import RunnerUnavailable, UsageError
from subdeck.core.hosts.dask.certificates import make_keys
from subdeck.core.hosts.dask.security import certificates, client_security
from subdeck.core.system import processes

from tests.core.command_line import subdeck

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]


def test_keys_are_for_their_owner_alone(tmp_path: Path) -> None:
    """Three files that only this user can read: an authority, a certificate signed by it, and its key."""
    made = make_keys(str(tmp_path / "deep" / "keys"))
    assert keys_in(str(tmp_path / "deep" / "keys")) == made
    assert {"ca.pem", "me.pem", "me.key"} == {path.name for path in (tmp_path / "deep" / "keys").iterdir()}
    for path in (made.ca, made.cert, made.key):
        assert 0o600 == stat.S_IMODE(os.stat(path).st_mode)
    assert 0o700 == stat.S_IMODE(os.stat(tmp_path / "deep" / "keys").st_mode)
    authority, member = (x509.load_pem_x509_certificate(Path(path).read_bytes()) for path in (made.ca, made.cert))
    member.verify_directly_issued_by(authority)
    assert "PRIVATE" not in Path(made.ca).read_text() + Path(made.cert).read_text()
    assert member.not_valid_before_utc < datetime.now(UTC) - timedelta(hours=12)
    assert member.not_valid_after_utc > datetime.now(UTC) + timedelta(days=3000)
    assert member.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
    ssl.create_default_context(cafile=made.ca).load_cert_chain(made.cert, made.key)


@pytest.mark.parametrize("name", ["ca.pem", "me.pem", "me.key"])
def test_keys_are_never_overwritten(tmp_path: Path, name: str) -> None:
    """If one of the files exists, even as a broken link, nothing is made."""
    (tmp_path / name).symlink_to("nowhere")
    with pytest.raises(UsageError, match="is not overwritten"):
        make_keys(str(tmp_path))
    assert [name] == os.listdir(tmp_path)


def test_the_command_says_what_to_do_with_them(project_dir: Path, tmp_path: Path) -> None:
    """Keys are made in the default directory; with another directory, the command prints the settings to write."""
    done = subdeck("hosts", "keys", cwd=project_dir)
    assert (0, f"Created ca.pem, me.pem and me.key in {keys_dir()}\n") == (done.code, done.out)
    assert "subdeck hosts serve tls://HEAD:8786   " in done.err
    assert "tls:" not in done.err.replace("tls://", "")
    assert "ssh HOST mkdir -p .config/subdeck\n" in done.err, "a home may be another there"
    assert f"{keys_dir()} HOST:.config/subdeck/\n" in done.err
    assert keys_in(keys_dir()) == certificates("tls://head:8786", TlsFiles())
    other = subdeck("hosts", "keys", str(tmp_path / "keys"), cwd=project_dir)
    assert f"--keys {tmp_path}/keys" in other.err
    assert f"HOST:{tmp_path}/\n" in other.err
    assert f"    tls: {{ca: {tmp_path}/keys/ca.pem, " in other.err
    again = subdeck("hosts", "keys", "--json", cwd=project_dir)
    assert (2, "") == (again.code, again.out)
    assert keys_in(keys_dir()).ca == again.error["where"]
    as_json = subdeck("hosts", "keys", "json", "--json", cwd=project_dir)
    assert {"ca", "cert", "key"} == set(as_json.document)


@pytest.mark.parametrize(
    ("address", "alone"),
    [
        ("tcp://127.0.0.1:8786", True),
        ("tcp://127.1.2.3:1", True),
        ("tcp://localhost:8786", True),
        ("tcp://[::1]:8786", True),
        ("tcp://127.evil.example:8786", False),
        ("tcp://127.0.0.1.evil.example:8786", False),
        ("tcp://localhost.evil.example:1", False),
        ("tcp://0.0.0.0:8786", False),
        ("tcp://10.0.0.1:8786", False),
        ("tcp://[::]:8786", False),
    ],
)
def test_only_loopback_goes_without(address: str, alone: bool) -> None:
    """A scheduler without encryption is accepted only on this machine, however its name begins."""
    assert is_address(address)
    assert alone == is_loopback(address)
    if alone:
        assert certificates(address, TlsFiles()) is None
        assert client_security(address, TlsFiles()).require_encryption is False
    else:
        with pytest.raises(RunnerUnavailable, match="is not encrypted"):
            certificates(address, TlsFiles())


@pytest.mark.parametrize("address", ["", "head:8786", "http://head:8786", "tls://head", "tls://-a b:1", "tls://a:1\n"])
def test_odd_addresses_are_none(address: str) -> None:
    """Invalid scheduler addresses are rejected."""
    assert not is_address(address)


def test_missing_files_are_named(tmp_path: Path) -> None:
    """A scheduler with encryption needs all three files; a missing or unreadable one is named."""
    made = make_keys(str(tmp_path))
    assert made == certificates("tls://head:8786", made)
    assert client_security("tls://head:8786", made).require_encryption is True
    for key in ("ca", "cert", "key"):
        with pytest.raises(RunnerUnavailable, match=r"gone.pem: No such file") as caught:
            certificates("tls://head:8786", replace(made, **{key: str(tmp_path / "gone.pem")}))
        assert f"hosts.tls.{key}" == caught.value.where


def test_unfit_files_are_told(tmp_path: Path) -> None:
    """An invalid certificate, a wrong key, or a key that others can read is reported before anything starts."""
    made, other = make_keys(str(tmp_path / "made")), make_keys(str(tmp_path / "other"))
    (tmp_path / "odd").write_text("odd")
    odd = str(tmp_path / "odd")
    os.chmod(odd, 0o600)
    for unfit in ({"ca": odd}, {"cert": odd}, {"key": odd}, {"key": other.key}, {"key": str(tmp_path)}):
        with pytest.raises(RunnerUnavailable, match="cannot use the certificates: "):
            certificates("tls://head:8786", replace(made, **unfit))
    os.chmod(made.key, 0o644)
    with pytest.raises(RunnerUnavailable, match="other users can read it"):
        certificates("tls://head:8786", made)
    os.chmod(made.key, 0o640)
    assert made == certificates("tls://head:8786", made)


def test_relative_paths_are_beside_the_settings(home: Path) -> None:
    """Relative certificate paths start at the user's settings; an unnamed file is where `hosts keys` makes it."""
    base = home / ".config" / "subdeck"
    found = tls_paths(TlsFiles(ca="a/ca.pem", cert="~/me.pem", key=""))
    assert TlsFiles(str(base / "a/ca.pem"), str(home / "me.pem"), str(base / "hosts/me.key")) == found


def cluster(**others: object) -> TryCluster:
    pid = os.getpid()
    started, boot = processes.start_time(pid) or 0, processes.boot_id()
    told = TryCluster("tls://127.0.0.1:1", "/ca", "/cert", "/key", pid=pid, started=started, boot_id=boot)
    return replace(told, **others)


def test_a_kept_cluster_is_in_force() -> None:
    """A kept cluster is used if the settings name no hosts; the other settings remain."""
    assert HostsSettings() == effective_hosts(HostsSettings())
    publish(cluster())
    settings = effective_hosts(HostsSettings(unreachable_after=3.0))
    assert ("tls://127.0.0.1:1", "/ca", 3.0) == (settings.scheduler, settings.tls.ca, settings.unreachable_after)
    for own in (HostsSettings(ssh=("h1",)), HostsSettings(scheduler="tls://head:1")):
        assert own == effective_hosts(own)


@pytest.mark.parametrize("changed", [{"pid": 2**22 - 1}, {"started": 1}, {"boot_id": "another"}])
def test_a_cluster_that_nobody_keeps_is_not(changed: dict[str, object]) -> None:
    """A cluster is ignored if its process has gone, its pid was reused, or it is of another boot."""
    publish(cluster(**changed))
    assert kept_cluster() is None
    assert HostsSettings() == effective_hosts(HostsSettings())


def test_what_was_told_may_be_broken() -> None:
    """An unreadable file counts as no cluster."""
    publish(cluster())
    Path(try_file()).write_bytes(b'{"scheduler": 1')
    assert kept_cluster() is None
