"""Build the wheel from a copy of the project's files: wheel.py DIRECTORY.

A build in the checkout would leave `build/` behind, and the next one would pack its content.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD_INPUT = ("pyproject.toml", "README.md", "LICENSE", "docs/man/subdeck.1")
PACKAGES = ("core", "tui")


def project_files() -> list[str]:
    """Return the files of the packages that git tracks, or would track; outside git, all existing ones."""
    listing = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *PACKAGES]
    git = subprocess.run(listing, capture_output=True, text=True) if (ROOT / ".git").exists() else None
    if git is None or git.returncode:
        found = (path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file())
        return sorted(str(path.relative_to(ROOT)) for path in found if "__pycache__" not in path.parts)
    return sorted(name for name in set(git.stdout.split("\0")) if name and (ROOT / name).exists())


def build_wheel(into: Path) -> Path:
    """Build in a copy, without network; `into` then holds exactly one wheel."""
    with tempfile.TemporaryDirectory() as copy:
        for name in (*BUILD_INPUT, *project_files()):
            target = Path(copy, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(into), copy]
        built = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if built.returncode:
            raise RuntimeError(f"the wheel was not built:\n{built.stdout}{built.stderr}")
    (wheel,) = into.glob("*.whl")
    return wheel


if __name__ == "__main__":
    print(build_wheel(Path(sys.argv[1])))
