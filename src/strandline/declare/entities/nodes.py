"""The node of an entity: its inputs, what its columns depend on, and its traits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

from strandline.declare.settings import calendar_part
from strandline.model.definitions import COLUMN_PART, ROWS_PART
from strandline.model.entity import Border, Entity, Use, Variable, window_borders
from strandline.model.hashing import make_config
from strandline.model.node import By, Input, Matched, Node, NodeConfig, Relation, Via
from strandline.model.own_clock import OwnClock, WatchedBorder
from strandline.model.project import Calendar
from strandline.model.report import listed
from strandline.model.traits import ColumnOrigin, OnClock, Traits
from strandline.sql.parse import hashed_sql, uses_calendar

from .variables import columns_of_row


def entity_node(
    entity: Entity, names: Mapping[str, str], calendar: Calendar, columns: tuple[str, ...]
) -> Node:
    """`names`: by node that it reads, the name in the project file."""
    return Node(
        name=entity.name,
        inputs=_inputs(entity, names),
        definition=entity,
        config=_config(entity, calendar),
        traits=Traits(
            how=f"One row per entity ({', '.join(entity.id)}): the variables of the entities that a change"
            " touches are computed again, each from its own input, and only rows that differ are written.",
            drawn_under="entities",
            key=entity.id,
            clock=_clock(entity),
            own_clock=_own_clock(entity, calendar),
            scopes_are="entities",
            origins=tuple(_origin(entity, variable) for variable in entity.variables),
            row_parts={f"{ROWS_PART} {namer.name}": namer.dataset for namer in entity.namers},
        ),
        columns=columns,
    )


def _clock(entity: Entity) -> OnClock:
    if entity.moves_everybody:
        return OnClock.EVERYTHING
    return OnClock.SCOPE if entity.moves else OnClock.NOTHING


def _origin(entity: Entity, variable: Variable) -> ColumnOrigin:
    part = f"{COLUMN_PART} {variable.name}"
    if variable.expr:
        needed = listed(variable.needs) or "nothing"
        why = f"it is computed from {needed} and reads no input"
        return ColumnOrigin(name=variable.name, part=part, read_from="", why=why, needs=variable.needs)
    window = variable.window.text if variable.window else ""
    use, accumulation = entity.get_use(variable.use), variable.accumulation
    why = f"the affected entities are read again{', inside of the window' if window else ''}"
    if variable.moves_everybody:
        why += (
            "; `:as_of` is used other than in a comparison with a bare column, so that every entity is"
            " affected when it moves"
        )
    elif variable.borders and not window:
        why += "; when `as_of` moves, the entities with rows that cross a border"
    return ColumnOrigin(
        name=variable.name,
        part=part,
        read_from=use.input,
        why=why,
        window=window,
        dataset=use.dataset,
        accumulation=accumulation,
        added=_tell_added(variable),
        borders=_watched(use, variable.borders),
        section=_watched(use, window_borders(variable.window))[0] if variable.window else None,
        datasets=_datasets_of(use),
    )


def _datasets_of(use: Use) -> tuple[str, ...]:
    """Every node that a use reads."""
    ranked = (use.ranked_by,) if use.ranked_by else ()
    return tuple(dict.fromkeys((use.dataset, *(step.dataset for step in use.via), *ranked)))


def _tell_added(variable: Variable) -> str:
    accumulation = variable.accumulation
    if accumulation is None or accumulation.refused:
        return ""
    if not all(addend.adding.takes_back for addend in accumulation.addends):
        return "new rows are compared with it: its rows are only added to, and none stops to count"
    told = "changed rows are added and subtracted"
    if variable.borders:
        told += ", and so are rows that cross a border when `as_of` moves"
    return told


def _watched(use: Use, borders: Iterable[Border]) -> tuple[WatchedBorder, ...]:
    return tuple(
        dict.fromkeys(WatchedBorder(dataset=use.dataset, column=b.column, steps=b.steps) for b in borders)
    )


def _own_clock(entity: Entity, calendar: Calendar) -> OwnClock | None:
    if not entity.moves:
        return None
    watched = dict.fromkeys(border for use in entity.uses for border in _watched(use, entity.borders_of(use)))
    return OwnClock(every=entity.every, timezone=calendar.timezone, borders=tuple(watched))


def _inputs(entity: Entity, names: Mapping[str, str]) -> tuple[Input, ...]:
    """Each node once, although several uses may read it."""
    made: dict[str, _Read] = {}

    def read(dataset: str) -> "_Read":
        return made.setdefault(dataset, _Read())

    for use in entity.uses:
        of_use = read(use.dataset)
        relation = By(columns=use.columns)
        of_use.relate(
            Via(input=names[use.via[0].dataset], on=use.via[0].on) if use.via else relation, use.own_columns
        )
        of_use.columns |= {c for v in entity.variables_of(use) for c in columns_of_row(v)}
        of_use.ranged |= dict.fromkeys(border.column for border in entity.borders_of(use))
        if use.ranked_by:
            read(use.ranked_by).relate(Matched(columns=use.own_columns), use.own_columns)
        for step, further in zip_longest(use.via, use.via[1:]):
            found_by = tuple(there for _, there in step.on)
            read(step.dataset).relate(
                Matched(columns=found_by),
                (*found_by, *((here for here, _ in further.on) if further else use.columns)),
            )
    for namer in entity.namers:
        read(namer.dataset).relate(By(columns=namer.columns), namer.columns)
    return tuple(
        Input(
            name=names.get(dataset, dataset),
            dataset=dataset,
            relation=of.relation,
            reads=frozenset(of.columns),
            ranged=tuple(of.ranged),
        )
        for dataset, of in made.items()
    )


@dataclass(slots=True)
class _Read:
    """What all uses and namers together need of one dataset."""

    relations: list[Relation] = field(default_factory=list)
    found_by: dict[str, None] = field(default_factory=dict)
    """The columns by which its rows find their entities."""
    columns: set[str] = field(default_factory=set)
    ranged: dict[str, None] = field(default_factory=dict)

    def relate(self, relation: Relation, columns: tuple[str, ...]) -> None:
        if relation not in self.relations:
            self.relations.append(relation)
        self.found_by |= dict.fromkeys(columns)
        self.columns |= set(columns)

    @property
    def relation(self) -> Relation:
        """One that is used in several ways is looked up by all these columns."""
        return self.relations[0] if len(self.relations) == 1 else Matched(columns=tuple(self.found_by))


def _config(entity: Entity, calendar: Calendar) -> NodeConfig:
    """Each variable is a part of its own. Only the id freezes: who exists and what a key is."""
    digests: dict[str, object] = {}
    for variable in (*(v for v in entity.variables if not v.expr), *entity.in_order()):
        digests[variable.name] = _part(entity, variable, digests, calendar)
    types = [str(type_) if type_ else None for type_ in entity.types]
    parts: dict[str, object] = {
        "id": [entity.id, types],
        **{f"{ROWS_PART} {namer.name}": namer.for_ever or "while a row does" for namer in entity.namers},
        **{f"{COLUMN_PART} {name}": part for name, part in digests.items()},
    }
    return make_config(parts, frozenset({"id"}))


def _part(entity: Entity, variable: Variable, digests: Mapping[str, object], calendar: Calendar) -> object:
    """What the values of a variable depend on. An expression depends on all that its variables do."""
    texts = (variable.select, variable.where, variable.expr)
    window, local = variable.window, any(map(uses_calendar, texts))
    of_use = None
    if not variable.expr:
        use = entity.get_use(variable.use)
        of_use = [use.dataset, use.columns, [[step.dataset, step.on] for step in use.via]]
    return [
        of_use,
        [hashed_sql(text) for text in texts],
        # A window over a date begins at midnight of the time zone. Its column may turn out to be one.
        [window.column, window.seconds, calendar.timezone] if window else None,
        variable.default,
        [digests[name] for name in variable.needs],
        calendar_part(calendar) if local else None,
    ]
