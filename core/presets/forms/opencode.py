"""opencode's agent files: markdown whose frontmatter turns tools off, and allows, asks or denies."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ...config.values import Count, Switch, unexpected
from ...config.yaml_tree import Fields, Node, Text
from ...models.catalog import INHERIT
from ...text.plain import one_line
from ..file import Preset
from .form import AgentFile, Form, read_frontmatter, stem_of

_EDITING = ("edit", "write")
"""opencode has one permission for everything that changes files."""

_TOOLS: dict[str, tuple[str, ...]] = {
    "read": ("read",),
    "grep": ("grep",),
    "glob": ("find",),
    "list": ("ls",),
    "bash": ("bash",),
    "edit": _EDITING,
    "write": _EDITING,
    "patch": _EDITING,
    "apply_patch": _EDITING,
    "multiedit": _EDITING,
    "webfetch": ("WebFetch",),
    "websearch": ("WebSearch", "web_search"),
    "codesearch": ("WebSearch", "web_search"),
    "task": ("Agent", "Task"),
    "skill": ("Skill",),
}
"""Its tools with subdeck's names or, if subdeck has none, those of the agents that have the tool."""

_HARMLESS = frozenset({"todowrite", "todoread", "question", "lsp", "doom_loop", "plan_enter", "plan_exit"})
"""Tools that neither change nor reach anything and have no counterpart."""

_PERMISSIONS = ("permission", "permissions")

_NOT_PASSED_ON = {
    "temperature": "no agent supports it",
    "top_p": "no agent supports it",
    "options": "they apply only to opencode",
    "hidden": "presets are always listed",
}

_SILENTLY = ("mode", "color")
"""opencode's own use and display of the agent."""


class _Rules(Struct, frozen=True):
    """The remaining tools: all but some, or only some."""

    denied: frozenset[str] = frozenset()
    allowed: tuple[str, ...] | None = None
    """None for all that are not denied."""


class OpencodeForm:
    def parse(self, text: str, path: str, agent: str) -> Preset | None:
        markdown = read_frontmatter(text)
        file = AgentFile(markdown.fields or Fields({}, 1), path)
        for key in ("disable", "disabled"):
            if file.value(key, Switch):
                file.refuse(key, "the agent is turned off", "remove the line to use it")
        tools, denied = _tools(file)
        steps, steps_before = file.value("steps", Count), file.value("maxSteps", Count)
        effort, variant = file.thinking("reasoningEffort"), file.thinking("variant")
        file.leave_out("name", "opencode names agents after their files")
        for key, why in _NOT_PASSED_ON.items():
            file.leave_out(key, why)
        return file.preset(
            "opencode",
            markdown.body or file.value("prompt") or "",
            name=stem_of(path),
            silently=_SILENTLY,
            agent=agent or None,
            model=file.value("model") or (INHERIT if agent else None),
            thinking=effort or variant,
            tools=tools,
            denied_tools=denied,
            max_turns=steps or steps_before,
        )

    def marks(self, fields: Fields) -> bool:
        mode, tools = fields.pairs.get("mode"), fields.pairs.get("tools")
        is_mode = isinstance(mode, Text) and mode.value in ("primary", "subagent", "all")
        return is_mode or not fields.pairs.keys().isdisjoint(_PERMISSIONS) or isinstance(tools, Fields)


def _tools(file: AgentFile) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Return the allowed and denied tools, by subdeck's names; never both. Raises ContentError."""
    tables = [_rules(file, key) for key in ("tools", *_PERMISSIONS)]
    denied = {name for rules in tables for name in rules.denied}
    lists = [rules.allowed for rules in tables if rules.allowed is not None]
    if not lists:
        return None, tuple(dict.fromkeys(name for names in _TOOLS.values() for name in names if name in denied)) or None
    first, *others = lists
    allowed = (name for name in first if name not in denied and all(name in other for other in others))
    return file.names("tools", allowed), None


def _rules(file: AgentFile, key: str) -> _Rules:
    """Read one of the tables; the last line about a tool counts, as in opencode."""
    is_allowed, verdicts = True, dict[str, bool]()
    for name, verdict in _verdicts(file, key):
        if name == "*":
            is_allowed = verdict
            verdicts.clear()
        else:
            verdicts[name] = verdict
    denied = {ours for name, verdict in verdicts.items() if not verdict for ours in _TOOLS[name]}
    if is_allowed:
        return _Rules(frozenset(denied))
    # If several of its tools are one of subdeck's, all of them must be allowed.
    allowed = (ours for name, verdict in verdicts.items() if verdict for ours in _TOOLS[name] if ours != "Task")
    return _Rules(frozenset(denied), tuple(dict.fromkeys(name for name in allowed if name not in denied)))


def _verdicts(file: AgentFile, key: str) -> Iterator[tuple[str, bool]]:
    """Yield for each named tool, or `*` for all, whether it is allowed. Raises ContentError."""
    node = file.node(key)
    if node is None:
        return
    if isinstance(node, Text) and key in _PERMISSIONS:
        yield "*", _is_allowed(file, key, "*", node)
        return
    if not isinstance(node, Fields):
        raise unexpected(key, "a line for each tool", node)
    for name, value in node.pairs.items():
        verdict = _is_allowed(file, key, name, value)
        if name == "*" or name in _TOOLS:
            yield name, verdict
        elif name not in _HARMLESS and verdict:
            file.warnings.append(f"{key}: {one_line(name, 40)} is ignored: only opencode has this tool")
        elif name not in _HARMLESS:
            what = f'the file denies "{one_line(name, 40)}", which agents here cannot enforce'
            file.refuse(key, what, f"deny tools by name ({', '.join(_TOOLS)}), or remove the line")


def _is_allowed(file: AgentFile, key: str, name: str, node: Node) -> bool:
    """Return whether a tool is allowed; not if that depends on its use or needs approval."""
    words = {"true", "allow"} if key == "tools" else {"allow"}
    if isinstance(node, Text):
        if node.value == "ask":
            file.warnings.append(f"{key}: {one_line(name, 40)} is denied: asking is not supported here")
        elif node.value not in words and node.value not in ("deny", "false"):
            raise unexpected(f"{key}.{name}", "allow, ask or deny" if key != "tools" else "true or false", node)
        return node.value in words
    verdicts = {_is_text_allowed(child) for child in node.pairs.values()} if isinstance(node, Fields) else {False}
    if verdicts == {True, False}:
        whole = "is denied completely: rules for parts of it cannot be enforced"
        file.warnings.append(f"{key}: {one_line(name, 40)} {whole}")
    return verdicts == {True}


def _is_text_allowed(node: Node) -> bool:
    return isinstance(node, Text) and node.value == "allow"


FORM: Form = OpencodeForm()
