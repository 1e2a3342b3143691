"""The program `subdeck`: the engine's command line, or the app if no command is named."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False  # like the one in typing
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.config.settings import Settings
    from ..core.errors import SettingsError

GC_THRESHOLD = 100_000
"""New objects between two garbage collections. With Python's own threshold, a tenth of a quick command and of the app's
start would be useless collections; `terminal.process` restores it once the app is loaded.
"""


def program() -> None:
    """Run `main` and end the process at once; never return. All output is written by now, and freeing each object would
    take up to a tenth of a quick command.
    """
    os._exit(main())


def main() -> int:
    """Run one command, or the app if none is named; return the exit code."""
    gc.set_threshold(GC_THRESHOLD)
    _fill_closed_descriptors()
    failure: BaseException | None = None
    if not sys.argv[1:]:  # do not load the command parser before the first paint
        try:
            return _open_app()
        except (Exception, KeyboardInterrupt) as error:
            failure = error
    if sys.argv[1:2] not in (["run"], ["bg"]) or "--help" in sys.argv:
        return _command_line(failure)
    from ..core.runners import standby

    standby.start()  # before the command parser is loaded
    try:
        return _command_line(failure)
    finally:
        standby.dismiss()


def _fill_closed_descriptors() -> None:
    """Open /dev/null for a closed stdin, stdout or stderr; the next opened file would get its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number


def _command_line(failure: BaseException | None) -> int:
    from ..core.system.imports import import_click, import_msgspec

    if sys.argv[1:] in (["status"], ["status", "--all"]):  # called often, and has to be fast
        import_msgspec()
        from ..core.cli import run_list

        return run_list.main(show_all=len(sys.argv) > 2)
    if sys.argv[1:] == ["mcp"]:  # its client waits
        import_msgspec()
        from ..core.cli import tool_server

        return tool_server.main()
    if sys.argv[1:2] == ["run"] and len(sys.argv) == 4 and not any(word.startswith("-") for word in sys.argv[2:]):
        import_msgspec()
        from ..core.cli import execution

        return execution.main(sys.argv[2:])
    import_click()
    from ..core.cli.main import main as command_line

    if not {"doctor", "settings"}.isdisjoint(sys.argv):  # the commands that check the settings
        from ..core.config import app_check

        app_check.faults = _faults_of_keys
    return command_line(
        lambda runs, readonly, beside: _open_app(runs, readonly=readonly, beside=beside, failure=failure)
    )


def _faults_of_keys(settings: Settings) -> list[SettingsError]:
    """Return why your keys and commands cannot be used. Only these load the modules of the app."""
    if not (settings.keys or settings.commands):
        return []
    from .terminal.textual_import import import_textual

    import_textual()
    from .keys.keymap import usable
    from .own_commands import own_actions

    return usable(settings.keys, own_actions(settings.commands))[1]


def _open_app(
    runs: Sequence[str] = (), *, readonly: bool = False, beside: bool = False, failure: BaseException | None = None
) -> int:
    """Run the app until you quit, and print what is still running; return the exit code.

    It opens on a run, or with several `beside` each other. A `failure` is raised here, so that the command line reports
    it like its own errors.
    """
    if failure is not None:
        raise failure
    from ..core.errors import UsageError
    from ..core.system.imports import import_msgspec

    streams = (sys.stdin, sys.stdout, sys.stderr)  # it is drawn on the last one
    if not all(stream is not None and stream.isatty() for stream in streams):
        raise UsageError(
            "the app needs a terminal on stdin, stdout and stderr",
            where="subdeck",
            hint="run subdeck --help for a list of commands",
            code="usage.terminal_required",
        )
    import_msgspec()
    from ..core.config import app_check
    from ..core.engine import Engine
    from ..core.run.model import LauncherKind
    from ..core.system.log import log_thread_faults

    log_thread_faults()
    app_check.faults = _faults_of_keys
    engine = Engine.open(kind=LauncherKind.APP, readonly=readonly)
    run_ids = engine.find(runs)  # before modules needed only by the app are loaded
    from .terminal.textual_import import import_textual

    import_textual()
    from .app import SubdeckApp
    from .terminal.escapes import kept_title
    from .terminal.rescue import FAULT, kept_terminal

    app = SubdeckApp(engine, *(() if beside else run_ids), readonly=readonly, watched=run_ids if beside else ())
    with kept_title(engine.settings.notifications.title) as parting, kept_terminal(app, parting) as kept:
        farewell = app.run()
    if farewell:
        from ..core.cli.output import drop_unwritten

        try:
            print(farewell)
        finally:
            drop_unwritten()
    return kept.code or (0 if app.return_code == 0 else FAULT)


if __name__ == "__main__":
    program()
