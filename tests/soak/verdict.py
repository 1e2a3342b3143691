"""Compare the leftovers of a trial with its children's actions and the hits; pure, except for reading the files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from subdeck.core.run.enumerations import STATUS_OF, RunReason, RunStatus
from subdeck.core.system import cgroup

from .arena import TIME_LIMIT_S
from .plan import Mischief, Plan, Scene, Victim
from .records import RunRecords, told
from .trial import Hit, Outcome

SEEN_NS = 2_000_000_000
"""A text that was on the stream for so long before its wrapper was killed must be in its records."""
SCRIPTED = frozenset({RunReason.DONE, RunReason.TIMEOUT, RunReason.STOPPED, RunReason.KILLED})
"""Results of runs that were not hit."""
KILLERS = frozenset({Victim.WRAPPER, Victim.TMUX_SERVER, Victim.ALL})
"""Victims that take a wrapper with them."""
FAULTS = frozenset({RunReason.LOST, RunReason.START_FAILED})
"""Results of a run by a fault of its wrapper."""
QUICK_S = TIME_LIMIT_S / 3
"""A child that finished so early reached no limit, even on a busy machine."""


class Broken(Struct, frozen=True):
    kind: str
    detail: str


def judge(plan: Plan, outcome: Outcome, runs: list[RunRecords], home: Path, output: Path) -> Iterator[Broken]:
    """Yield every fault found after a trial."""
    if outcome.is_given_up:
        unfinished = "; ".join(f"run {run.number}: {run.ending}" for run in runs)
        yield Broken("never over", unfinished or "a launcher or a server never came to its end")
    conversations = {run.meta.child_session_id for run in runs if run.journal.has("begun")}
    if plan.scene is Scene.STICKY and len(conversations) > 1:
        yield Broken("two conversations of a sticky preset", ", ".join(run.ending for run in runs))
    for run in runs:
        hits = [hit for hit in outcome.hits if _concerns(plan, hit, run)]
        yield from _one(plan, run, hits, outcome)
    for number in outcome.called_lost:
        yield Broken("lost while alive", f"run {number}")
    if outcome.left and not _is_beyond_reach(plan, outcome):
        endings = ", ".join(f"run {run.number} ({plan.behaviours[run.number]}) {run.ending}" for run in runs)
        yield Broken("process left", f"{'; '.join(outcome.left)}; after {endings}")
    for run in runs:
        if run.path.name in outcome.untold:
            yield Broken("told to nobody", f"run {run.number}: {run.ending}")
    yield from _telling(home)
    yield from _tracebacks(outcome, output)


def _is_beyond_reach(plan: Plan, outcome: Outcome) -> bool:
    """Return whether leftovers cannot be found: a daemon dropped all marks as its wrapper was killed."""
    bare = {number for number, behaviour in enumerate(plan.behaviours) if behaviour.startswith("bare-")}
    hits = {hit.run for hit in outcome.hits if hit.victim is Victim.WRAPPER and not hit.error}
    has_server_died = any(hit.victim is Victim.TMUX_SERVER for hit in outcome.hits)
    is_told = plan.scene is Scene.MCP  # its wrappers are alike: which of them was hit is not known
    return not plan.has_groups and bool(bare) and (bool(hits & bare) or has_server_died or (is_told and bool(hits)))


def _telling(home: Path) -> Iterator[Broken]:
    for session in (home / "sessions").glob("*.jsonl"):
        for run_id, times in told(session).items():
            if times > 1:
                yield Broken("told twice", f"{run_id}: {times} times in {session.name}")


def _tracebacks(outcome: Outcome, output: Path) -> Iterator[Broken]:
    faulted = {hit.victim for hit in outcome.hits if hit.error}
    for file in sorted(output.glob("*.err")):
        if _writer(file) not in faulted and "Traceback" in (content := file.read_text(errors="replace")):
            yield Broken("traceback", f"{file.name}: {content.strip().splitlines()[-1]}")


def _writer(file: Path) -> Victim:
    """Return whose stderr a file is. Errors inside of Python's own imports are not checked."""
    names = {"teller": Victim.FOLLOWER, "launcher": Victim.LAUNCHER, "looker": Victim.LOOKER, "mcp": Victim.MCP}
    return names[file.stem.rstrip("0123456789")]


def _concerns(plan: Plan, hit: Hit, run: RunRecords) -> bool:
    if hit.victim is Victim.WRAPPER and hit.call and plan.scene is Scene.MCP:
        return True  # the server starts all its wrappers in the same way
    if hit.victim in (Victim.WRAPPER, Victim.CHILD, Victim.LAUNCHER):
        return hit.run == run.number
    return hit.victim in (Victim.TMUX_SERVER, Victim.TMUX_CLIENT, Victim.MCP, Victim.STANDBY, Victim.ALL)


def _one(plan: Plan, run: RunRecords, hits: list[Hit], outcome: Outcome) -> Iterator[Broken]:
    victims = {hit.victim for hit in hits}
    name = f"run {run.number} ({plan.behaviours[run.number]})"
    if run.torn:
        yield Broken("torn events", f"{name}: {run.torn} lines")
    numbers = [event.get("seq") for event in run.events]
    if numbers != list(range(1, len(numbers) + 1)) and run.journal.count("begun") <= 1:
        yield Broken("events out of order", f"{name}: {numbers}")
    is_tidy = not any(hit.call in ("unlinkat", "openat") for hit in hits)  # or it could not remove its own
    for file in ("environment", ".result.reserved"):
        if is_tidy and (run.path / file).exists():
            yield Broken("file left", f"{name}: {file}")
    # One that was on standby, and is killed after releasing its run, looks like one without a run.
    if not victims & {*KILLERS, Victim.STANDBY} and (group := cgroup.find(run.path.name)):
        yield Broken("control group left", f"{name}: {group}")
    if (run.path.parent.parent / "active" / run.path.name).exists():
        yield Broken("doorbell left", f"{name}: {run.ending}")
    result = run.result
    if result is None:
        yield Broken("no result", name)
        return
    if plan.scene is Scene.OFFLINE:
        has_end = any(event["type"] == "run_ended" for event in run.events) or result.artifact_errors
        if result.status is RunStatus.COMPLETED and not has_end:
            yield Broken("false completed", f"{name}: without an end in its events")
        return
    is_unlocked = any(one.kind is Mischief.NO_LOCK and one.run == run.number for one in outcome.disturbances)
    yield from _ending(plan, run, victims, hits, name, is_unlocked=is_unlocked)
    if run.journal.count("begun") <= 1:  # two children write into one journal
        yield from _texts(run, victims, hits, name, is_late=_was_stopped(plan, outcome, run))


def _ending(
    plan: Plan, run: RunRecords, victims: set[Victim], hits: list[Hit], name: str, *, is_unlocked: bool
) -> Iterator[Broken]:
    result, journal = run.result, run.journal
    assert result is not None
    if result.status is RunStatus.COMPLETED and not journal.has("ending"):
        yield Broken("false completed", f"{name}: its child never said so; {run.ending}")
    if STATUS_OF.get(result.reason) is not result.status:
        yield Broken("status and reason disagree", f"{name}: {run.ending}")
    if journal.count("begun") > 1:
        yield Broken("started twice", f"{name}: {journal.count('begun')} children")
    if journal.has("beside") and plan.scene is Scene.STICKY:
        yield Broken("two writers of a session", name)
    message = result.error_message or ""
    if "launcher died before" in message and journal.has("begun"):
        yield Broken("wrong words", f"{name}: its child had begun; {run.ending}")
    if result.reason is RunReason.START_FAILED and journal.has("begun"):
        yield Broken("wrong words", f"{name}: its child had begun; {run.ending}")
    is_killed = any(not hit.error and hit.victim in KILLERS for hit in hits)
    if "died unexpectedly" in message and not is_killed and Victim.WRAPPER in victims:
        yield Broken("crash without its error", f"{name}: {_faults(hits)}; {run.ending}")
    if result.reason in SCRIPTED:
        if result.reason is RunReason.TIMEOUT and 0 < journal.lasted < QUICK_S and not victims:
            yield Broken("ended otherwise", f"{name}: {run.ending}")
        return
    if result.reason is RunReason.LOST and is_unlocked and not journal.has("begun"):
        return  # a process looked when the lock was free and there was no wrapper yet
    if not victims & _excuses(result.reason):
        yield Broken("ended otherwise", f"{name}: {run.ending}")


def _excuses(reason: RunReason) -> set[Victim]:
    """Return which victims can cause this reason."""
    match reason:
        case RunReason.AGENT_EXIT:
            return {Victim.CHILD, *KILLERS}
        case RunReason.LOST:
            # One on standby may just have been given a run.
            return {Victim.LAUNCHER, Victim.STANDBY, Victim.TMUX_CLIENT, Victim.MCP, *KILLERS}
        case RunReason.START_FAILED | RunReason.AGENT_MISSING:
            return {Victim.LAUNCHER, Victim.TMUX_CLIENT, *KILLERS}
        case RunReason.SIGNAL:
            return {Victim.TMUX_SERVER, Victim.ALL}
        case RunReason.CANCELLED:
            return {Victim.MCP, Victim.LAUNCHER}
        case _:
            return {Victim.WRAPPER}


def _was_stopped(plan: Plan, outcome: Outcome, run: RunRecords) -> bool:
    """Return whether the wrapper of a run could not read for a while."""
    stopped = (one for one in outcome.disturbances if one.kind is Mischief.STOP and one.victim is Victim.WRAPPER)
    return any(one.run == run.number or plan.scene is Scene.MCP for one in stopped)


def _texts(run: RunRecords, victims: set[Victim], hits: list[Hit], name: str, *, is_late: bool) -> Iterator[Broken]:
    result, journal = run.result, run.journal
    assert result is not None
    wrapper_hits = [hit for hit in hits if hit.victim is Victim.WRAPPER]
    faulted = any(hit.error for hit in wrapper_hits)
    is_killed = any(not hit.error and hit.victim in KILLERS for hit in hits)
    is_in_order = not is_killed and not result.artifact_errors and result.reason not in FAULTS
    is_whole = not victims & KILLERS or is_in_order
    recorded = run.texts
    if is_whole:
        expected = journal.said()
    else:
        killed_at = min((hit.at for hit in hits if not hit.call), default=0)
        expected = journal.said(killed_at - SEEN_NS) if killed_at and not (faulted or is_late) else []
    if recorded[: len(expected)] != expected:
        yield Broken("text lost", f"{name}: {len(recorded)} of {len(expected)} texts in its events; {run.ending}")
    last = (journal.said() or [None])[-1] if is_whole else (recorded or [None])[-1]
    final = result.final_text or None
    is_known = final in (last, journal.saying) or journal.sentence or (final and journal.begins_next(final))
    if not faulted and not result.artifact_errors and not is_known:
        yield Broken("final text is another", f"{name}: {_short(result.final_text)} for {_short(last)}; {run.ending}")
    if result.status is RunStatus.COMPLETED and journal.said() and result.final_text != journal.said()[-1]:
        yield Broken("final text is another", f"{name}: {_short(result.final_text)}; {run.ending}")
    sentence = journal.sentence
    if (
        is_whole
        and sentence
        and sentence not in (result.final_text or "")
        and not any(sentence in text for text in recorded)
    ):
        yield Broken("sentence lost", f"{name}: {_short(sentence)}; {run.ending}")


def _faults(hits: list[Hit]) -> str:
    return ", ".join(hit.error for hit in hits if hit.error)


def _short(text: str | None) -> str:
    return "nothing" if not text else repr(text[:50])
