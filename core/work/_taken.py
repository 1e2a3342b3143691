"""What became of all that a run changed, as it is written beside its worktree, and how that is taken back."""

from __future__ import annotations

from msgspec import Struct, structs

from .record import Taken, WorkRecord, read_record, write_record


class TakenBefore(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What stood in the record of a worktree before."""

    directory: str
    taken: Taken | None = None
    taken_tree: str = ""

    @classmethod
    def of(cls, directory: str, record: WorkRecord) -> TakenBefore:
        return cls(directory, record.taken, record.taken_tree)

    def restore(self) -> None:
        """Write it back. Raises OSError."""
        if (record := read_record(self.directory)) is not None:
            write_record(self.directory, structs.replace(record, taken=self.taken, taken_tree=self.taken_tree))


def mark_taken(directory: str, record: WorkRecord, taken: Taken, tree: str) -> None:
    """Write what became of all that a run changed, `tree` being what it was. Raises OSError."""
    write_record(directory, structs.replace(record, taken=taken, taken_tree=tree))
