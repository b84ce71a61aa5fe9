"""The type of a section of the project file.

Each section is a value that its own module makes. `sections` lists them all.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from .loading import Loading
from .yaml_lines import DataPath


def _own_name(name: Any, _: object) -> Collection[str]:
    return (str(name),)


def _every_entry(_: object) -> bool:
    return True


def _no_stand_in(*_: object) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Section:
    """Entries of one shape under one key. The defaults suit a mapping of names to entries."""

    key: str
    """Its key in the project file."""
    spec: Any
    """The shape of an entry: a pydantic model, or a union of several."""
    load: Callable[[Mapping[Any, Any], Loading], None]
    """Turns entries into definitions and nodes, and reports every mistake in them.

    Takes the valid entries, by name or by place in the list.
    """
    counted_as: str
    """What `check` calls an entry."""
    counted_if_none: bool = False
    """`check` also reports that there is none."""
    is_counted: Callable[[Any], bool] = _every_entry
    """Whether `check` counts an entry."""
    is_list: bool = False
    """The entries are a list, and each has a `name`."""
    names: Callable[[Any, object], Collection[str]] = _own_name
    """The names that an entry which could not be understood would have taken.

    Takes the entry's name or its place in the list, and the entry as written.
    """
    follow_ups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By key of an entry: slugs of mistakes that may only follow from a wrong value of that key."""
    stand_in: Callable[[Mapping[str, Any], DataPath], object | None] = _no_stand_in
    """A value for a required key that an entry lacks, so that the rest of the entry is checked.

    Takes the entry and the place of the key.
    """
    unreadable: Callable[[DataPath], tuple[DataPath, object] | None] = _no_stand_in
    """What replaces a value that cannot be understood, and where. By default the value is left out.

    Takes the place of the value.
    """
    not_yet: Mapping[str, str] = field(default_factory=dict)
    """Keys of an entry that LANGUAGE promises and this version does not support, and the name of each."""
