"""Variables as they are written: alone or in a group, with one for each length of a window."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from strandline.declare.yaml_lines import DataPath, Document
from strandline.model.report import Report
from strandline.model.typed_values import Scalar

from .spec import AggregateSpec, EntitySpec, ExprSpec, OwnerSpec, SelectSpec, WindowSpec
from .windows import Length, make_lengths


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text of the project file and its place."""

    text: str
    path: DataPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One variable. Everything that it shares with others has been filled in."""

    name: str
    path: DataPath
    dataset: str = ""
    """Empty for an `expr`."""
    dataset_path: DataPath = ()
    by: OwnerSpec | None = None
    by_path: DataPath = ()
    select: Text | None = None
    where: tuple[Text, ...] = ()
    """All must be true."""
    window: WindowSpec | None = None
    window_path: DataPath = ()
    length: Length | None = None
    lacks_length: bool = False
    """No length of its window is right, so its name is not known. Everything else of it is checked."""
    default: Scalar | None = None
    default_path: DataPath = ()
    merge: str | None = None
    expr: Text | None = None

    @property
    def title(self) -> str:
        """Its name in messages. The variables of a family have the same, and share their mistakes."""
        return str(self.path[-1]).lower()

    def owner_of(self, path: DataPath) -> str:
        """What a part of it belongs to, in messages: to the variable, or to the group that shares it."""
        return f"the variable `{self.title}`" if path[: len(self.path)] == self.path else "a group"


def read_variables(spec: EntitySpec, path: DataPath, document: Document, report: Report) -> list[Written]:
    """All variables of an entity, in the order in which they are written."""
    written = []
    for one in (*_alone(spec, path), *_grouped(spec, path)):
        if one.window is None:
            written.append(one)
            continue
        what = f"the window of {one.owner_of(one.window_path)}"
        lengths = make_lengths(one.window, what, one.window_path, document, report)
        for length in lengths:
            written.append(replace(one, name=f"{one.name}{length.suffix}", length=length))
        if not lengths:
            written.append(replace(one, lacks_length=True))
    return written


def _alone(spec: EntitySpec, path: DataPath) -> Iterator[Written]:
    for name, variable in spec.variables.items():
        at = (*path, "variables", name)
        if isinstance(variable, ExprSpec):
            yield Written(
                name=name.lower(),
                path=at,
                expr=Text(text=variable.expr, path=(*at, "expr")),
                default=variable.default,
                default_path=(*at, "default"),
            )
        else:
            yield _aggregate(name, variable, at)


def _aggregate(name: str, variable: AggregateSpec, at: DataPath) -> Written:
    return Written(
        name=name.lower(),
        path=at,
        dataset=variable.from_,
        dataset_path=(*at, "from"),
        by=variable.by,
        by_path=(*at, "by"),
        select=Text(text=variable.select, path=(*at, "select")),
        where=_texts(variable.where, (*at, "where")),
        window=variable.window,
        window_path=(*at, "window"),
        default=variable.default,
        default_path=(*at, "default"),
        merge=variable.merge,
    )


def _grouped(spec: EntitySpec, path: DataPath) -> Iterator[Written]:
    for number, group in enumerate(spec.groups):
        of_group = (*path, "groups", number)
        for name, variable in group.variables.items():
            at = (*of_group, "variables", name)
            own = SelectSpec(select=variable) if isinstance(variable, str) else variable
            select_path = at if isinstance(variable, str) else (*at, "select")
            yield Written(
                name=name.lower(),
                path=at,
                dataset=group.from_,
                dataset_path=(*of_group, "from"),
                by=group.by,
                by_path=(*of_group, "by"),
                select=Text(text=own.select, path=select_path),
                where=(
                    *_texts(group.where, (*of_group, "where")),
                    *_texts(own.where, (*at, "where")),
                ),
                window=group.window,
                window_path=(*of_group, "window"),
                default=own.default,
                default_path=(*at, "default"),
                merge=own.merge,
            )


def _texts(text: str | None, path: DataPath) -> tuple[Text, ...]:
    return () if text is None else (Text(text=text, path=path),)
