"""What a client can list, as it is now: the tools, and presets as prompts; and word to it when a list has changed."""

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
from ..presets.places import preset_places
from ..project.follower import watch
from ..system.log import log_fault
from ..text.plain import one_line
from ._protocol import CLAUDE_CODE, Fields

ALWAYS_LOAD = {"anthropic/alwaysLoad": True}
"""Claude Code keeps the description of a tool without it out of the conversation until the model searches for it."""

TASK = "task"
"""The one argument of each prompt."""

AGAIN_S = 5.0
"""Seconds after which a watch that failed begins again."""

TOOLS = "tools"
PROMPTS = "prompts"


class Lists:
    """The lists as the client was given them; each is read from the files as they are when it is asked for.

    From the first on the files are watched, directly and not through `Engine.updates`: nobody is shown runs here.
    """

    def __init__(self, engine: Engine, changed: Callable[[str], None]) -> None:
        """Call `changed` with the name of a list that the client was given, when it is another one."""
        self._engine = engine
        self._changed = changed
        self._given: dict[str, list[Fields]] = {}
        self._reading = threading.Lock()
        """Held from reading the files until the list here is set, so that no change is missed in between."""
        self._asking = threading.Lock()
        """Held while pi is asked for its models."""
        self._asked_at: object = None
        """The state of the files that pi's list depends on, when pi was asked last."""
        self._watcher: threading.Thread | None = None
        self._stop = threading.Event()

    def tools(self) -> list[Fields]:
        """Read the tools. Raises SubdeckError, OSError."""
        return self._give(TOOLS, self._read_tools)

    def prompts(self) -> list[Fields]:
        """Read the prompts. Raises SubdeckError, OSError."""
        return self._give(PROMPTS, self._read_prompts)

    def prompt(self, name: str, arguments: Mapping[str, str], client: str) -> Fields:
        """Fill in a prompt for a client of that name. Raises SubdeckError, OSError."""
        return _prompt_text(self._engine.presets(), name, arguments, client)

    def close(self) -> None:
        """Stop watching; it looks every few milliseconds."""
        self._stop.set()
        if self._watcher:
            self._watcher.join(1)

    def _give(self, name: str, read: Callable[[], list[Fields]]) -> list[Fields]:
        with self._reading:
            content = self._given[name] = read()
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, name="changes", daemon=True)
                self._watcher.start()
        return content

    def _watch(self) -> None:
        """Compare the lists after each change of a file that presets, settings or models come from."""

        def directories() -> tuple[str, ...]:
            presets = (path for place in preset_places(self._engine.workspace) for path in place.directories())
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
        """Watch until other directories matter."""
        workspace = self._engine.workspace
        for change in watch(self._engine.project, directories, self._stop):
            if change.presets:
                try:
                    self._compare()
                    if self._refresh_models():
                        self._compare()
                except (SubdeckError, OSError) as error:
                    _complain(error)
            # Whoever lists the tools reads the settings again; they may name other directories now.
            if self._engine.workspace is not workspace:
                return

    def _compare(self) -> None:
        for name, read in ((TOOLS, self._read_tools), (PROMPTS, self._read_prompts)):
            with self._reading:
                if name not in self._given:
                    continue
                content = read()
                is_other = content != self._given[name]
                self._given[name] = content
            if is_other:
                self._changed(name)

    def _read_tools(self) -> list[Fields]:
        specs = tools_for(self._engine)
        if not specs and self._refresh_models():
            specs = tools_for(self._engine)
        return [_tool(spec) for spec in specs]

    def _read_prompts(self) -> list[Fields]:
        """Return a prompt for each preset; none where there is no tool to launch it."""
        return _prompts(self._engine.presets().presets) if self._read_tools() else []

    def _refresh_models(self) -> bool:
        """Bring the agent's list of models up to date; return whether it was asked, which takes a second or two.

        A client of MCP announces no models of its own, unlike pi as a parent. pi is asked at most once for each state
        of the files that its list depends on, any other agent once a day.
        """
        if paths.is_child():
            return False
        try:
            agent = self._engine.agent()
            known = model_list(agent)
            if known is None:
                return False
            with self._asking:
                if known.key == self._asked_at or has_whole_list(agent) or not (known.is_outdated or known.is_due()):
                    return False
                self._asked_at = known.key
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
    """Fill in a prompt. Raises PresetError for an unknown preset, UsageError for other arguments than the task."""
    preset = catalog.get(name)
    task = arguments.get(TASK, "").strip()
    if not task or set(arguments) != {TASK}:
        raise UsageError(f'the prompt "{one_line(name, 80)}" takes one argument: {TASK}', where="prompts/get")
    call = f"Call the tool subagent with preset {one_line(preset.name)} for"
    if client == CLAUDE_CODE:
        # It splits what was typed at blanks, hands over one word for each argument, and drops the others. Its model is
        # shown the whole line as well.
        text = (
            f"{call} the task that I typed after the command: the whole line above in command-args, "
            f"word for word. Only its first word was passed here ({task}). Then tell me what it found "
            "or did."
        )
    else:
        text = f"{call} this task, then tell me what it found or did:\n\n{task}"
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"description": one_line(preset.description, 200), "messages": [message]}
