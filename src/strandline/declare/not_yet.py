"""What LANGUAGE promises and this version does not support yet: the keys in `Section.not_yet`.

Whoever builds a feature removes its key from its section.
"""

from collections.abc import Iterable, Iterator

from strandline.model.report import Report

from .section import Section
from .yaml_lines import DataPath, Document


def set_aside(
    document: Document, sections: Iterable[Section], report: Report
) -> tuple[dict[DataPath, object], frozenset[str]]:
    """Report what is not supported yet. Returns the entries that contain it, by path, and every word in them.

    The words are treated as existing names, so that a reference to one is not reported as well.
    """
    aside: dict[DataPath, object] = {}
    if not isinstance(document.data, dict):
        return aside, frozenset()
    not_yet = {section.key: section.not_yet for section in sections}
    for path in _walk(document.data, ()):
        entry = path[:2]
        words = not_yet.get(str(path[0]), {}).get(str(path[2]), "")
        if words and entry not in aside:
            aside[entry] = _at(document.data, entry)
            _add(report, document, path, words)
    return aside, frozenset(word for path, value in aside.items() for word in (*_words(value), str(path[-1])))


def _add(report: Report, document: Document, path: DataPath, words: str) -> None:
    what = f"{words} is not supported by this version yet."
    report.add("not-yet", what, "Leave it out until a later version.", document.place(*path))


def _walk(data: object, path: DataPath) -> Iterator[DataPath]:
    """The paths of all keys of entries."""
    if len(path) == 3:
        yield path
    else:
        pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
        for step, value in pairs:
            yield from _walk(value, (*path, step))


def _at(data: object, path: DataPath) -> object:
    for step in path:
        data = data[step]  # type: ignore[index]
    return data


def _words(data: object) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield key
            yield from _words(value)
    elif isinstance(data, list):
        for value in data:
            yield from _words(value)
