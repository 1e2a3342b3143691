"""One git operation on the work of a run: it is planned, shown to a person, done, and can be taken back.

Each has a module in this package with three functions: `plan` changes nothing, `act` does what a plan says and writes
the act down before, as begun, and `undo` takes it back. The plan describes itself to people and programs. The table
here names them all; command line and app know only the table and what is common to all plans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from msgspec import Struct
from msgspec.structs import replace

from .. import paths
from ..run.changes import ChangedFile
from ..run.kinds import OpenEnum
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
    """An undo that has begun to write: what the files were, and what they are to be."""

    now: str
    wanted: str
    """Trees, known to the store that is kept for the act."""


class Act(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What was done, as it stands on the stack of acts."""

    id: str
    kind: ActKind
    words: str
    """To whom it was done: `reviewer 4ae0bd`, `3 runs`, `the preset scout`."""
    at: str
    data: dict[str, Any] = {}
    """What taking it back needs, known to who recorded it alone."""
    begun: bool = False
    """Whether it is not known to be done: somebody is at it, or was killed."""
    part_of: str = ""
    """What it was a step of, as `choosing reviewer 4ae0bd`: it is taken back with those beside it that say the same."""
    undo: Undo | None = None
    """Set before an undo writes the first file. If that undo fails or is killed, the next one finishes it."""

    @property
    def is_deletion(self) -> bool:
        return self.kind in (ActKind.DELETE_RUNS, ActKind.DELETE_PRESET)

    @property
    def title(self) -> str:
        """Name it for who is asked whether to take it back: `applying reviewer 4ae0bd`."""
        operation = BY_KIND.get(self.kind)
        return self.part_of or f"{operation.doing if operation else self.kind} {self.words}"


class TakenBack(Struct, frozen=True):
    said: str
    """What became of it, for a person: `brought back 3 runs`."""
    run_ids: tuple[str, ...] = ()
    """Runs that are there again."""
    path: str = ""
    """Of the preset that is."""


# --- plans -----------------------------------------------------------------------------------------------------------


class Plan(Struct, frozen=True, kw_only=True):
    """What an operation would do; each has a class of its own, which knows what doing it takes."""

    operation: Operation
    """The one that made it, and does it."""
    run_id: str
    run: str
    """Names it for people: `reviewer 4ae0bd`."""
    branch: str = ""
    """The one that gets a commit, is saved or goes."""
    files: tuple[ChangedFile, ...] = ()
    """What would be written."""
    conflicts: tuple[Conflict, ...] = ()
    refusal: str = ""
    """Why nothing can be done, a clause; empty where it can."""
    advice: str = ""
    """What to do then."""
    notes: tuple[str, ...] = ()
    """What a person should know, clauses."""
    message: str = ""
    """Proposed for the commit, another one may be given; empty where none is made."""
    is_running: bool = False
    summary: str = ""
    """What the work is that would go, in short: `3 files changed, which exists nowhere else`."""
    directory: str = ""
    """Of all that is kept of the run's work."""

    @property
    def words(self) -> str:
        """Say what it will do, or what keeps it from that; some lines."""
        if self.refusal:
            return "\n".join(filter(None, (sentence(self.refusal), begun(self.advice))))
        return "\n".join(self.describe())

    def describe(self) -> Iterable[str]:
        """Say what it will do, a line each."""
        raise NotImplementedError

    def refused(self, why: str, advice: str = "") -> Self:
        """Return it with why nothing can be done, and what to do then."""
        return replace(self, refusal=why, advice=advice)

    def document(self, *, done: bool, message: str) -> dict[str, object]:
        """Return it for programs, and whether it was done, with which message."""
        raise NotImplementedError


def sentence(clause: str) -> str:
    """Make a sentence of a clause, empty of none."""
    return f"{begun(clause)}{'' if clause.endswith(('.', '?')) else '.'}" if clause else ""


def begun(clause: str) -> str:
    """Have a clause begin with a capital, unless with a command."""
    return clause if clause.startswith(("git ", "subdeck ")) else clause[:1].upper() + clause[1:]


def file_lines(files: Sequence[ChangedFile]) -> list[str]:
    """Name the first files, a line each, and say how many more there are."""
    more = [f"  and {len(files) - NAMED} more"] if len(files) > NAMED else []
    return [*map(_file_line, files[:NAMED]), *more]


def _file_line(file: ChangedFile) -> str:
    lines = "" if file.added is None or file.removed is None else f"  +{file.added} −{file.removed}"
    name = f"{one_line(file.old_path, 200)} → {one_line(file.path, 200)}" if file.old_path else one_line(file.path, 200)
    return f"  {file.status:<8} {name}{lines}"


def listed(conflicts: Sequence[Conflict]) -> str:
    """Name the first conflicts, and say how many more there are."""
    names = ", ".join(f"{one_line(one.path, 200)} ({one_line(one.why, 120)})" for one in conflicts[:NAMED])
    return f"{names}, and {len(conflicts) - NAMED} more" if len(conflicts) > NAMED else names


def conflicts_of(plan: Plan) -> list[dict[str, str]]:
    """Return the conflicts of a plan for programs."""
    return [{"path": one.path, "kind": one.kind, "why": one.why} for one in plan.conflicts]


# --- the table -------------------------------------------------------------------------------------------------------


class _Module(Protocol):
    """What the module of an operation has."""

    plan: Callable[..., Plan]
    """Takes the project, the run, and what else may be asked for, by name."""
    act: Callable[[paths.Project, Any, str], Act]
    """Returns the act; the last one where it has several steps."""
    undo: Callable[[paths.Project, Act], TakenBack]
    is_void: Callable[[paths.Project, Act], bool]
    """Of deletions alone."""


class Operation(Struct, frozen=True, kw_only=True, eq=False):
    """Where an operation is, and what it is called; `{}` stands for the run or its branch."""

    kind: ActKind | None = None
    """Of its acts; None for one whose steps are acts of other operations."""
    module: str
    """In this package; loaded by who needs it."""
    options: dict[str, Any] = {}
    """What makes this form of it."""
    doing: str = ""
    """How an act of it is called."""
    title: str = ""
    """The question of the app's dialog."""
    verb: str = ""
    """The button in it."""
    done: str = ""
    """What the app says afterwards."""
    is_harmless: bool = True
    """Whether Enter means yes."""
    command: str = ""
    """Of the command line."""
    question: str = ""
    """What that asks; empty where it does not."""
    said: str = ""
    """What that says afterwards."""
    unsaid: str = ""
    """What it says after a no."""

    def plan(self, project: paths.Project, run: RunSnapshot, /, **options: Any) -> Plan:
        """Say what it would do; nothing is changed. `plan` in its module says what may be asked for.

        Takes as long as git. Raises SubdeckError, also for what the plan does not refuse in words, and OSError.
        """
        return self._module.plan(project, run, **self.options, **options)

    def act(self, project: paths.Project, plan: Plan, message: str = "") -> Act:
        """Do what a plan says, or refuse as something changed meanwhile; the act can be taken back. The commit gets
        another message than that of the plan where one is given.

        Raises SubdeckError and OSError: then nothing was done, or what was done stands on the stack of acts.
        """
        return self._module.act(project, plan, message)

    def undo(self, project: paths.Project, act: Act) -> TakenBack:
        """Take an act back; one that was only begun, too. Raises SubdeckError and OSError."""
        return self._module.undo(project, act)

    def is_void(self, project: paths.Project, act: Act) -> bool:
        """Return whether nothing is left of an act that could be brought back."""
        return act.is_deletion and self._module.is_void(project, act)

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
    command="apply",
    question="Apply?",
    said="applied; subdeck undo reverts it",
    unsaid="nothing was applied",
)
MERGE = Operation(
    kind=ActKind.MERGE,
    module="merge",
    doing="merging",
    title="Merge {}?",
    verb="Merge",
    done="Merged {}",
    command="merge",
    question="Merge?",
    said="merged; subdeck undo reverts it",
    unsaid="nothing was done",
)
SQUASH = replace(
    MERGE,
    kind=ActKind.PICK,
    options={"pick": True},
    doing="picking",
    title="Squash {}?",
    verb="Squash",
    done="Squashed {}",
    question="Pick?",
    said="picked; subdeck undo reverts it",
)
COMMIT = Operation(
    kind=ActKind.COMMIT,
    module="commit",
    doing="committing",
    title="Commit {}?",
    verb="Commit",
    done="Committed {}",
    command="merge",
    question="Commit?",
    said="committed; subdeck undo reverts it",
    unsaid="nothing was done",
)
SAVE = Operation(
    kind=ActKind.KEEP,
    module="save",
    doing="keeping",
    command="keep",
    said="saved as branch {}; subdeck undo removes it",
)
DISCARD = Operation(
    kind=ActKind.DISCARD,
    module="discard",
    doing="discarding",
    title="Discard {}?",
    verb="Discard",
    done="Discarded {}",
    is_harmless=False,
    command="discard",
    question="Discard?",
    said="discarded; subdeck undo restores it",
    unsaid="nothing was discarded",
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
BY_KIND = {one.kind: one for one in OPERATIONS if one.kind is not None}
"""What takes acts back. Deletions are planned elsewhere."""
