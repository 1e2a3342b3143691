"""A user installs exactly the tracked files."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from email import message_from_bytes
from importlib.metadata import version
from pathlib import Path

import pytest
from subdeck.core import __version__

from .wheel import ROOT, build_wheel, project_files

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_the_tracked_files(wheel: Path) -> None:
    """The wheel has each tracked file of core and tui under `subdeck`, the man page in its data, and nothing else."""
    packed = {name for name in contents(wheel) if ".dist-info/" not in name}
    page = f"subdeck-{__version__}.data/data/share/man/man1/subdeck.1"
    assert {f"subdeck/{name}" for name in project_files()} | {page} == packed


def test_the_packages_hold_only_what_runs() -> None:
    """core and tui consist only of Python, extensions for pi, bundled presets, style sheets and the reply page."""
    assert {".py", ".ts", ".md", ".tcss", ".css", ".html", ".js"} >= {Path(name).suffix for name in project_files()}


def test_the_version_has_one_source(wheel: Path) -> None:
    """Wheel, installed metadata and package name the same version."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        packed = message_from_bytes(archive.read(metadata))["Version"]
    assert [__version__, __version__] == [packed, version("subdeck")]


def test_an_installed_wheel_starts(wheel: Path, tmp_path: Path, project_dir: Path) -> None:
    """The command works when installed in a separate environment, without the checkout."""
    place = tmp_path / "environment"
    venv.create(place)
    python = place / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    installed = subprocess.run([*pip, "--disable-pip-version-check"], capture_output=True, text=True)
    assert installed.returncode == 0, installed.stderr
    (packages,) = place.glob("lib/python*/site-packages")
    # A path in a .pth file brings the dependencies, but not the editable install beside them.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = [str(python), "-P", "-c", "import subdeck.core.engine as engine; print(engine.__file__)"]
    assert f"{packages}/subdeck/core/engine.py" == subprocess.check_output(where, text=True, cwd=project_dir).strip()
    page = (place / "share" / "man" / "man1" / "subdeck.1").read_text(encoding="utf-8")
    assert page == (ROOT / "docs" / "man" / "subdeck.1").read_text(encoding="utf-8")
    told = subprocess.check_output([str(place / "bin" / "subdeck"), "--version"], text=True, cwd=project_dir)
    assert __version__ in told
