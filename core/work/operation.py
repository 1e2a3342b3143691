"""A git operation on a run's work: planned, shown to a person, carried out, and undoable.

Each has a module in this package with three functions. `plan` changes nothing. `act` first records the act as begun,
then carries out the plan. `undo` reverts it. A plan describes itself to people and programs. The table here lists all
operations; command line and app know only the table and what all plans have in common. So a new operation is a module
and an entry in the table, with its option and its key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from msgspec import Struct
from msgspec.structs import replace

from .. import paths
from ..run.changes import ChangedFile
from ..run.enumerations import OpenEnum
from ..system.imports import load
from ..text.plain import one_line

if TYPE_CHECKING:
    from ..git.merges import Conflict
    from ..run.snapshot import RunSnapshot

NAMED = 8
"""Files that a sentence names."""


class ActKind(OpenEnum):
    DELETE_RUNS = "delete_runs"
    DELETE_PRESET = "delete_preset"
    APPLY = "apply"
    COMMIT = "commit"
    MERGE = "merge"
    PICK = "pick"
    KEEP = "keep"
    DISCARD = "discard"


class Undo(Struct, frozen=True):
    """An undo that has begun to write: the files' tree, and the intended one."""

    now: str
    wanted: str
    """Trees, known to the store of the act."""


class Act(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An action, as recorded on the stack of acts."""

    id: str
    kind: ActKind
    words: str
    """Its object: `reviewer 4ae0bd`, `3 runs`, `the preset scout`."""
    at: str
    data: dict[str, Any] = {}
    """Data for the undo, known only to its operation."""
    begun: bool = False
    """Whether it may be unfinished: in progress, or killed."""
    part_of: str = ""
    """Its action if it is a step, such as `choosing reviewer 4ae0bd`; adjacent steps of one are undone together."""
    undo: Undo | None = None
    """Set before an undo writes the first file. If that undo fails or is killed, the next one finishes it."""

    @property
    def is_deletion(self) -> bool:
        return self.kind in (ActKind.DELETE_RUNS, ActKind.DELETE_PRESET)

    @property
    def title(self) -> str:
        """Its name in the confirmation of an undo: `applying reviewer 4ae0bd`."""
        operation = BY_KIND.get(self.kind)
        return self.part_of or f"{operation.doing if operation else self.kind} {self.words}"


class TakenBack(Struct, frozen=True):
    outcome: str
    """The outcome for a person: `restored 3 runs`."""
    run_ids: tuple[str, ...] = ()
    """Restored runs."""
    path: str = ""
    """Path of a restored preset."""


# --- plans -----------------------------------------------------------------------------------------------------------


class Plan(Struct, frozen=True, kw_only=True):
    """The effect of an operation; each has its own class, with the data to carry it out."""

    operation: Operation
    """The operation that made it."""
    run_id: str
    run: str
    """The run's name: `reviewer 4ae0bd`."""
    branch: str = ""
    """The branch that gets a commit, is saved or removed."""
    files: tuple[ChangedFile, ...] = ()
    """The files to write."""
    conflicts: tuple[Conflict, ...] = ()
    refusal: str = ""
    """Why nothing can be done, a clause; empty if it can."""
    advice: str = ""
    """What to do then."""
    notes: tuple[str, ...] = ()
    """Notes for a person, clauses."""
    message: str = ""
    """Default message of the commit; empty without a commit."""
    is_running: bool = False
    summary: str = ""
    """Summary of work to discard: `3 files changed, which exists nowhere else`."""
    directory: str = ""
    """Directory of the run's work."""

    @property
    def words(self) -> str:
        """Describe its effect, or why it is refused, in some lines."""
        if self.refusal:
            return "\n".join(filter(None, (sentence(self.refusal), begun(self.advice))))
        return "\n".join(self.describe())

    def describe(self) -> Iterable[str]:
        """Describe its effect, a line each."""
        raise NotImplementedError

    def refused(self, why: str, advice: str = "") -> Self:
        """Return it with a reason why nothing can be done, and advice."""
        return replace(self, refusal=why, advice=advice)

    def document(self, *, done: bool, message: str) -> Struct:
        """Return the JSON document of the operation. `done`: whether it was done, with this message."""
        raise NotImplementedError


def sentence(clause: str) -> str:
    """Make a sentence of a clause; empty if it is."""
    return f"{begun(clause)}{'' if clause.endswith(('.', '?')) else '.'}" if clause else ""


def begun(clause: str) -> str:
    """Capitalize a clause, unless it starts with a command."""
    return clause if clause.startswith(("git ", "subdeck ")) else clause[:1].upper() + clause[1:]


def file_lines(files: Sequence[ChangedFile]) -> list[str]:
    """Name the first files, a line each, and the number of the others."""
    more = [f"  and {len(files) - NAMED} more"] if len(files) > NAMED else []
    return [*map(_file_line, files[:NAMED]), *more]


def _file_line(file: ChangedFile) -> str:
    lines = "" if file.added is None or file.removed is None else f"  +{file.added} −{file.removed}"
    name = f"{one_line(file.old_path, 200)} → {one_line(file.path, 200)}" if file.old_path else one_line(file.path, 200)
    return f"  {file.status:<8} {name}{lines}"


def listed(conflicts: Sequence[Conflict]) -> str:
    """Name the first conflicts, and the number of the others."""
    names = ", ".join(
        f"{one_line(conflict.path, 200)} ({one_line(conflict.why, 120)})" for conflict in conflicts[:NAMED]
    )
    return f"{names}, and {len(conflicts) - NAMED} more" if len(conflicts) > NAMED else names


class ConflictDocument(Struct, frozen=True):
    """A conflict in a JSON document."""

    path: str
    kind: str
    """Git's word for the conflict, such as `content`."""
    why: str
    """Git's sentence about it, such as `Merge conflict in a.txt`."""


def conflicts_of(plan: Plan) -> tuple[ConflictDocument, ...]:
    """Return the conflicts of a plan for a JSON document."""
    return tuple(ConflictDocument(conflict.path, conflict.kind, conflict.why) for conflict in plan.conflicts)


# --- the table -------------------------------------------------------------------------------------------------------


class _Module(Protocol):
    """The functions of an operation's module."""

    plan: Callable[..., Plan]
    """Takes the project, the run, and options by name."""
    act: Callable[[paths.Project, Any, str], Act]
    """Returns the act; the last one of several steps."""
    undo: Callable[[paths.Project, Act], TakenBack]
    is_void: Callable[[paths.Project, Act], bool]
    """For deletions only."""


class InView(Struct, frozen=True, kw_only=True):
    """An operation's key in the app's view of a run's changes."""

    action: str
    """Name of the action, as in the setting `app.keys`."""
    key: str
    name: str
    """One or two words for the footer."""
    help: str
    footer: int = 0
    """Rank in the footer, 1 first; 0 hides it."""


class Operation(Struct, frozen=True, kw_only=True, eq=False):
    """An operation's module and texts; `{}` stands for the run or its branch."""

    kind: ActKind | None = None
    """Kind of its acts; None if its steps are acts of other operations."""
    module: str
    """In this package; imported when needed."""
    options: dict[str, Any] = {}
    """Options for this variant."""
    doing: str = ""
    """Name of its acts, such as `applying`."""
    title: str = ""
    """Question in the app's dialog."""
    verb: str = ""
    """Button in the dialog."""
    done: str = ""
    """The app's message afterwards."""
    is_harmless: bool = True
    """Whether Enter means yes."""
    in_view: InView | None = None
    """None: no key there, or one that first asks for more."""
    command: str = ""
    """Name on the command line."""
    option: str = ""
    """Option of that command that chooses this operation, such as `--squash`; empty for the command's own."""
    option_help: str = ""
    takes_message: bool = False
    """Whether the command takes the message of a commit."""
    question: str = ""
    """Question on the command line; may be empty."""
    outcome: str = ""
    """Its message afterwards."""
    declined: str = ""
    """Its message after a no."""

    def plan(self, project: paths.Project, run: RunSnapshot, /, **options: Any) -> Plan:
        """Plan it; nothing is changed. The module's `plan` documents the options.

        Takes as long as git. Raises OSError and SubdeckError, even for problems that are not a plan's refusal.
        """
        return self._module.plan(project, run, **self.options, **options)

    def act(self, project: paths.Project, plan: Plan, message: str = "") -> Act:
        """Carry out a plan, or refuse if something has changed; the act can be undone. `message` replaces the plan's
        message for the commit.

        On SubdeckError and OSError nothing was done, or the act is on the stack.
        """
        return self._module.act(project, plan, message)

    def undo(self, project: paths.Project, act: Act) -> TakenBack:
        """Undo an act, even one that was only begun. Raises SubdeckError and OSError."""
        return self._module.undo(project, act)

    def is_void(self, project: paths.Project, act: Act) -> bool:
        """Whether nothing is left of an act to restore."""
        return act.is_deletion and self._module.is_void(project, act)

    @property
    def parameter(self) -> str:
        """Name of its option as a parameter: `squash`."""
        return self.option.removeprefix("--").replace("-", "_")

    @property
    def _module(self) -> _Module:
        return cast(_Module, load(f"{__package__}.{self.module}"))


APPLY = Operation(
    kind=ActKind.APPLY,
    module="apply",
    doing="applying",
    title="Apply {}?",
    verb="Apply",
    done="Applied {}",
    in_view=InView(
        action="apply_changes",
        key="P",
        name="apply",
        help="Apply all of the run's changes to your working tree, unstaged. Shows the effect first.",
        footer=1,
    ),
    command="apply",
    question="Apply?",
    outcome="applied; subdeck undo reverts it",
    declined="nothing was applied",
)
MERGE = Operation(
    kind=ActKind.MERGE,
    module="merge",
    doing="merging",
    title="Merge {}?",
    verb="Merge",
    done="Merged {}",
    in_view=InView(
        action="merge_changes",
        key="M",
        name="merge",
        help="Merge the run's worktree branch into your branch. Shows the effect first.",
        footer=9,
    ),
    command="merge",
    takes_message=True,
    question="Merge?",
    outcome="merged; subdeck undo reverts it",
    declined="nothing was done",
)
SQUASH = replace(
    MERGE,
    kind=ActKind.PICK,
    options={"pick": True},
    doing="squashing",
    title="Squash {}?",
    verb="Squash",
    done="Squashed {}",
    in_view=InView(
        action="pick_changes", key="Q", name="squash", help="Squash the run's work into one commit on your branch."
    ),
    option="--squash",
    option_help="Make one new commit without the run's own commits.",
    question="Squash?",
    outcome="squashed; subdeck undo reverts it",
)
COMMIT = Operation(
    kind=ActKind.COMMIT,
    module="commit",
    doing="committing",
    title="Commit {}?",
    verb="Commit",
    done="Committed {}",
    in_view=InView(
        action="commit_changes", key="C", name="commit", help="Commit the run's uncommitted work to its own branch."
    ),
    command="merge",
    option="--commit",
    option_help="Only commit the uncommitted changes, on the run's own branch.",
    takes_message=True,
    question="Commit?",
    outcome="committed; subdeck undo reverts it",
    declined="nothing was done",
)
SAVE = Operation(
    kind=ActKind.KEEP,
    module="save",
    doing="saving",
    command="apply",
    outcome="saved as branch {}; subdeck undo removes it",
)
DISCARD = Operation(
    kind=ActKind.DISCARD,
    module="discard",
    doing="discarding",
    title="Discard {}?",
    verb="Discard",
    done="Discarded {}",
    in_view=InView(
        action="discard_changes",
        key="D",
        name="discard",
        help="Remove the run's worktree and branch. Asks first.",
        footer=10,
    ),
    is_harmless=False,
    command="discard",
    question="Discard?",
    outcome="discarded; subdeck undo restores it",
    declined="nothing was discarded",
)
CHOOSE = Operation(
    module="choose",
    title="Choose {} as the winner?",
    verb="Choose",
    done="Chose {} as the winner",
    is_harmless=False,
)
_DELETE_RUNS = Operation(kind=ActKind.DELETE_RUNS, module="deletion", doing="deleting")
_DELETE_PRESET = replace(_DELETE_RUNS, kind=ActKind.DELETE_PRESET)

OPERATIONS = (APPLY, MERGE, SQUASH, COMMIT, SAVE, DISCARD, CHOOSE, _DELETE_RUNS, _DELETE_PRESET)
BY_KIND = {operation.kind: operation for operation in OPERATIONS if operation.kind is not None}
"""Operations for undo. Deletions are planned elsewhere."""
