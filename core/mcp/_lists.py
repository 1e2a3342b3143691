"""The lists for a client: the tools, and presets as prompts; and notifications when a list changes."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping

from .. import paths
from ..agents.choice import has_whole_list, model_list, refresh_models
from ..delegation.schema import SEND, STATUS, ToolSpec, tools_for
from ..engine import Engine
from ..errors import AgentUnavailable, SubdeckError, UsageError, reason
from ..presets.catalog import Preset, PresetCatalog
from ..presets.sources import preset_directories
from ..project.follower import watch
from ..system.log import log_fault
from ..text.plain import one_line
from ._protocol import CLAUDE_CODE, Fields

ALWAYS_LOAD = {"anthropic/alwaysLoad": True}
"""Without it, Claude Code shows a tool's description to the model only after the model searches for it."""

TASK = "task"
"""The only argument of each prompt."""

AGAIN_S = 5.0
"""Seconds until a failed watch restarts."""

TOOLS = "tools"
PROMPTS = "prompts"


class Lists:
    """The lists as given to the client; each is read from the files on request.

    After the first request the files are watched, directly and not through `Engine.updates`, because no runs are shown
    here.
    """

    def __init__(self, engine: Engine, changed: Callable[[str], None]) -> None:
        """Call `changed` with the name of a sent list when that list changes."""
        self._engine = engine
        self._changed = changed
        self._sent_lists: dict[str, list[Fields]] = {}
        self._reading = threading.Lock()
        """Held while the files are read and the list is stored, so that no change is missed."""
        self._asking = threading.Lock()
        """Held while pi lists its models."""
        self._asked_at: object = None
        """The state of the files behind pi's list at its last refresh."""
        self._watcher: threading.Thread | None = None
        self._stop = threading.Event()

    def tools(self) -> list[Fields]:
        """Read the tools. Raises SubdeckError, OSError."""
        return self._give(TOOLS, self._read_tools)

    def prompts(self) -> list[Fields]:
        """Read the prompts. Raises SubdeckError, OSError."""
        return self._give(PROMPTS, self._read_prompts)

    def prompt(self, name: str, arguments: Mapping[str, str], client: str) -> Fields:
        """Fill in a prompt for the named client. Raises SubdeckError, OSError."""
        return _prompt_text(self._engine.presets(), name, arguments, client)

    def close(self) -> None:
        """Stop the watcher, which checks every few milliseconds."""
        self._stop.set()
        if self._watcher:
            self._watcher.join(1)

    def _give(self, name: str, read: Callable[[], list[Fields]]) -> list[Fields]:
        with self._reading:
            content = self._sent_lists[name] = read()
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, name="changes", daemon=True)
                self._watcher.start()
        return content

    def _watch(self) -> None:
        """Compare the lists after each change to the files of presets, settings or models."""

        def directories() -> tuple[str, ...]:
            presets = (
                path for preset_dir in preset_directories(self._engine.workspace) for path in preset_dir.directories()
            )
            settings = os.path.dirname(paths.user_settings_file())
            return (*presets, self._engine.project.home, settings, paths.agent_dir())

        while not self._stop.is_set():
            try:
                self._watch_once(directories)
            except Exception as error:  # the next watch begins with a comparison, so that no change is missed
                log_fault("watching the lists", error)
                _complain(error)
                self._stop.wait(AGAIN_S)

    def _watch_once(self, directories: Callable[[], tuple[str, ...]]) -> None:
        """Watch until the set of directories changes."""
        workspace = self._engine.workspace
        for change in watch(self._engine.project, directories, self._stop):
            if change.presets:
                try:
                    self._compare()
                    if self._refresh_models():
                        self._compare()
                except (SubdeckError, OSError) as error:
                    _complain(error)
            # Listing the tools reads the settings again, which may now name other directories.
            if self._engine.workspace is not workspace:
                return

    def _compare(self) -> None:
        for name, read in ((TOOLS, self._read_tools), (PROMPTS, self._read_prompts)):
            with self._reading:
                if name not in self._sent_lists:
                    continue
                content = read()
                has_changed = content != self._sent_lists[name]
                self._sent_lists[name] = content
            if has_changed:
                self._changed(name)

    def _read_tools(self) -> list[Fields]:
        specs = tools_for(self._engine)
        if not specs and self._refresh_models():
            specs = tools_for(self._engine)
        return [_tool(spec) for spec in specs]

    def _read_prompts(self) -> list[Fields]:
        """Return a prompt for each preset; none if no tool can launch them."""
        return _prompts(self._engine.presets().presets) if self._read_tools() else []

    def _refresh_models(self) -> bool:
        """Refresh the agent's list of models if needed; return whether that happened, which takes a second or two.

        An MCP client announces no models, unlike a parent pi. pi is asked once for each state of the files behind its
        list, any other agent once a day.
        """
        if paths.is_child():
            return False
        try:
            agent = self._engine.agent()
            saved_list = model_list(agent)
            if saved_list is None:
                return False
            with self._asking:
                if (
                    saved_list.key == self._asked_at
                    or has_whole_list(agent)
                    or not (saved_list.is_outdated or saved_list.is_due())
                ):
                    return False
                self._asked_at = saved_list.key
                refresh_models(agent)
                return True
        except AgentUnavailable as error:
            _complain(error)
            return False


def _complain(error: Exception) -> None:
    print(f"subdeck mcp: {one_line(reason(error))}", file=sys.stderr, flush=True)


def _tool(spec: ToolSpec) -> Fields:
    only_reads, is_rare = spec.name == STATUS, spec.name in (STATUS, SEND)
    return {
        "name": spec.name,
        "title": spec.label,
        "description": spec.description,
        "inputSchema": spec.parameters,
        "outputSchema": spec.output,
        "annotations": {"readOnlyHint": only_reads, "idempotentHint": only_reads},
    } | ({} if is_rare else {"_meta": ALWAYS_LOAD})


def _prompts(presets: Iterable[Preset]) -> list[Fields]:
    argument = {"name": TASK, "description": "what the subagent should do", "required": True}
    return [
        {
            "name": preset.name,
            "title": preset.name,
            "description": one_line(preset.description, 200),
            "arguments": [argument],
        }
        for preset in presets
    ]


def _prompt_text(catalog: PresetCatalog, name: str, arguments: Mapping[str, str], client: str) -> Fields:
    """Fill in a prompt. Raises PresetError for an unknown preset, UsageError for arguments other than the task."""
    preset = catalog.get(name)
    task = arguments.get(TASK, "").strip()
    if not task or set(arguments) != {TASK}:
        raise UsageError(f'the prompt "{one_line(name, 80)}" takes one argument: {TASK}', where="prompts/get")
    call = f"Call the tool subagent with preset {one_line(preset.name)} for"
    if client == CLAUDE_CODE:
        # It splits the typed line at whitespace, passes one word for each argument, and drops the others. Its model
        # also sees the whole line.
        text = (
            f"{call} the task that I typed after the command: the whole line above in command-args, "
            f"word for word. Only its first word was passed here ({task}). Then tell me what it found "
            "or did."
        )
    else:
        text = f"{call} this task, then tell me what it found or did:\n\n{task}"
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"description": one_line(preset.description, 200), "messages": [message]}
