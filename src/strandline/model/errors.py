"""Errors, by who must act on them.

Every text reports where, what and what to do, and ends with a stable slug.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line in a file of the project."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One thing wrong with the project: where, what, what to do."""

    slug: str
    what: str
    remedy: str
    place: Place | None = None

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return f"{where}{self.what}\n  {self.remedy}  [{self.slug}]"


class StrandlineError(Exception):
    """An error that Strandline raises on purpose. The command line ends with `exit_code`."""

    exit_code = 1
    slug = "failed"

    def __init__(self, what: str, *, remedy: str = "", slug: str | None = None) -> None:
        self.what = what
        self.remedy = remedy
        self.slug = slug or type(self).slug
        super().__init__(what)

    def __str__(self) -> str:
        remedy = f"\n  {self.remedy}" if self.remedy else ""
        return f"{self.what}{remedy}  [{self.slug}]"


class ProjectError(StrandlineError):
    """The project's author (or the caller) must act. Contains every mistake, not only the first."""

    exit_code = 2
    slug = "project"

    def __init__(self, mistakes: tuple[Mistake, ...] | list[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(
            "\n".join(str(m) for m in self.mistakes), slug=self.mistakes[0].slug if self.mistakes else None
        )

    def __str__(self) -> str:
        return self.what


class CallError(StrandlineError):
    """The call is wrong: an unknown name, or a selector that matches nothing."""

    exit_code = 2
    slug = "call"


class WorkError(StrandlineError):
    """A task cannot be done with its input: a rewritten file, a missing column. Other tasks continue."""

    exit_code = 1
    slug = "work"


class ConflictError(StrandlineError):
    """Nobody must act: another writer was first. The task is planned again."""

    exit_code = 1
    slug = "conflict"


class FencedError(ConflictError):
    """This writer lost its lease, and the storage refused its commit (L7)."""

    slug = "fenced"


class GuardedError(StrandlineError):
    """The guard stopped a task: too many live records would be deleted."""

    exit_code = 1
    slug = "guarded"


class OutsideError(StrandlineError):
    """An operator must act: Spark, disk, database, Java."""

    exit_code = 3
    slug = "outside"


def one_mistake(slug: str, what: str, remedy: str, place: Place | None = None) -> ProjectError:
    """A ProjectError with a single mistake, for checks that are possible only while a task runs."""
    return ProjectError((Mistake(slug=slug, what=what, remedy=remedy, place=place),))
