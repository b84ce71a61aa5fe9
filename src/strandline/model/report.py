"""The report of every mistake in a project, in the order of its files and lines."""

import difflib
from collections.abc import Iterable

from strandline.model.errors import Mistake, Place, ProjectError


class Report:
    """Collects mistakes. Checks add to it and continue; `raise_if_any` ends the loading with all of them."""

    def __init__(self) -> None:
        self._mistakes: list[Mistake] = []
        self._silent: frozenset[str] = frozenset()

    def without(self, slugs: Iterable[str]) -> "Report":
        """The same report, ignoring mistakes with these slugs: they only follow from one already reported."""
        quieter = Report()
        quieter._mistakes, quieter._silent = self._mistakes, self._silent | frozenset(slugs)
        return quieter

    def add_all(self, mistakes: Iterable[Mistake]) -> None:
        for mistake in mistakes:
            self.add(mistake.slug, mistake.what, mistake.remedy, mistake.place)

    def add(self, slug: str, what: str, remedy: str, place: Place | None = None) -> None:
        if slug in self._silent:
            return
        mistake = Mistake(slug=slug, what=what, remedy=remedy, place=place)
        if mistake not in self._mistakes:
            self._mistakes.append(mistake)

    def __len__(self) -> int:
        return len(self._mistakes)

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """In the order of files and lines."""
        return tuple(
            sorted(
                self._mistakes,
                key=lambda m: (m.place.file if m.place else "", m.place.line if m.place else 0),
            )
        )

    def raise_if_any(self) -> None:
        if self._mistakes:
            raise ProjectError(self.mistakes)


def find_nearest(word: str, words: Iterable[str]) -> str | None:
    """The word that was probably meant. None if no word is similar."""
    matches = difflib.get_close_matches(word.lower(), sorted(set(words)), n=1, cutoff=0.6)
    return matches[0] if matches else None


def suggest(word: str, words: Iterable[str], what: str) -> str:
    """A remedy for a misspelt word: the nearest valid one, or the list of all."""
    known = sorted(set(words))
    if nearest := find_nearest(word, known):
        return f"Did you mean `{nearest}`?"
    if not known:
        return f"There are no {what} to choose from."
    shown = ", ".join(f"`{name}`" for name in known[:12])
    return f"Known {what}: {shown}{', ...' if len(known) > 12 else ''}."


def listed(words: Iterable[str]) -> str:
    """`a`, `b` and `c`."""
    quoted = [f"`{word}`" for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}" if quoted else ""
