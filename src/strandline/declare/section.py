"""What a section of the project file is. Each is a value that its own module makes; `sections` lists them all."""

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
    """The key of the project file that it stands under."""
    spec: Any
    """The shape of an entry: a pydantic model, or a union of several."""
    load: Callable[[Mapping[Any, Any], Loading], None]
    """Turns the entries, by name or by place in the list, into definitions and nodes, and reports every mistake in them."""
    counted_as: str
    """What `check` calls an entry."""
    counted_if_none: bool = False
    """`check` also says that there is none."""
    is_counted: Callable[[Any], bool] = _every_entry
    """Whether `check` counts an entry."""
    is_list: bool = False
    """The entries are a list, and each has a `name`."""
    names: Callable[[Any, object], Collection[str]] = _own_name
    """The names that an entry would have taken, for one that could not be understood. Takes its name or place, and the entry as written."""
    follow_ups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By key of an entry: slugs of the mistakes that may only follow from the key's value not being understood."""
    stand_in: Callable[[Mapping[str, Any], DataPath], object | None] = _no_stand_in
    """A value for a required key that an entry lacks, so that the rest of the entry is checked. Takes the entry and the place of the key."""
    unreadable: Callable[[DataPath], tuple[DataPath, object] | None] = _no_stand_in
    """What to put where a value cannot be understood; by default the value is left out. Takes the value's place."""
    not_yet: Mapping[str, str] = field(default_factory=dict)
    """Keys of an entry that LANGUAGE promises and this version does not support, and what each is called."""
