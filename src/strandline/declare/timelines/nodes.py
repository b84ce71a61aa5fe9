"""The nodes of a timeline: what their rows depend on, their traits, and the columns of both outputs."""

from collections.abc import Iterable, Mapping

from strandline.declare.settings import calendar_part
from strandline.model.columns import Role
from strandline.model.hashing import make_config
from strandline.model.node import By, Input, Matched, Node, NodeConfig
from strandline.model.project import Calendar
from strandline.model.timeline import DATE, EPOCH, Reference, Timeline, Valuation
from strandline.model.traits import Folding, OnClock, Part, Traits
from strandline.sql.known_columns import Known
from strandline.sql.parse import hashed_sql, uses_calendar

STATE_COLUMNS = ("watermark_on", "status", "reason", "updated_at")
"""What the dataset of states tells about a key besides its epoch."""
SUPERSEDED_COLUMNS = ("superseded_by", "superseded_at")
"""What the dataset of epochs tells about a row that was replaced or removed."""
_HEADING = "timelines"


def know_columns(
    key: Mapping[str, str | None], fields: Mapping[str, str | None], columns: Iterable[str] = ()
) -> Known:
    """The columns of an output. `key` and `fields` map names to types."""
    types: dict[str, str | None] = {
        **key,
        DATE: "date",
        **fields,
        **dict.fromkeys(columns),
        EPOCH: "bigint",
    }
    row_key = (*key, DATE)
    return Known(types=types, complete=True, names=frozenset(types), unique=(row_key,), row_key=row_key)


def timeline_node(timeline: Timeline, facts: str, columns: tuple[str, ...], last: str) -> Node:
    """`facts` is the name of the facts in the project file, `last` the last output of the timeline."""
    return Node(
        name=timeline.output,
        inputs=(Input(name=facts, dataset=timeline.facts, relation=By(columns=timeline.key)),),
        definition=timeline,
        config=_timeline_config(timeline),
        traits=Traits(
            how=f"The facts of `{facts}` are folded for each key ({', '.join(timeline.key)}), date by date: a"
            " key whose new facts are later continues from its state, any other touched key is folded again,"
            " and only rows that differ are written.",
            drawn_under=_HEADING,
            key=timeline.row_key,
            key_is_named_by="each fact names its key",
            keeps_deleted=True,
            partitioned=True,
            parts=_parts(timeline) if last == timeline.output else (),
            folding=_folding(timeline, last),
        ),
        columns=columns,
    )


def _folding(timeline: Timeline, last: str) -> Folding:
    return Folding(
        name=timeline.name,
        key=timeline.key,
        facts=timeline.facts,
        date=timeline.date,
        order_by=timeline.order_by,
        fields=tuple(field.name for field in timeline.fields),
        history=timeline.output,
        last=last,
    )


def _parts(timeline: Timeline) -> tuple[Part, ...]:
    """The datasets beside a timeline, which are parts of its last output."""
    state = Part(
        name=f"{timeline.name}_state",
        role=Role.HEAD,
        columns=(*timeline.key, EPOCH),
        details=STATE_COLUMNS,
    )
    return state, Part(name=f"{timeline.name}_epochs", role=Role.EPOCH, details=SUPERSEDED_COLUMNS)


def _timeline_config(timeline: Timeline) -> NodeConfig:
    """Every part freezes: each row depends on all earlier facts of its key."""
    parts: dict[str, object] = {
        **_shape(timeline),
        "facts": timeline.facts,
        "date": timeline.date,
        "order_by": timeline.order_by,
        "fold": timeline.fold.code,
        "function": timeline.fold.function,
        "modules": {m.name: m.code for m in timeline.fold.modules},
    }
    return make_config(parts, frozenset(parts))


def _shape(timeline: Timeline) -> dict[str, object]:
    return {
        "key": timeline.key,
        "fields": [[field.name, str(field.type)] for field in timeline.fields],
        "together": timeline.together,
    }


def valuation_node(
    valuation: Valuation, names: Mapping[str, str], calendar: Calendar, columns: tuple[str, ...]
) -> Node:
    """`names`: by node that it reads, the name in the project file."""
    timeline = valuation.timeline
    return Node(
        name=valuation.output,
        inputs=_valuation_inputs(valuation, names),
        definition=valuation,
        config=_valuation_config(valuation, calendar),
        traits=Traits(
            how=f"`{timeline.output}` is valued on each business date that is due: only the keys and dates"
            " that a change reaches are computed again, and only rows that differ are written.",
            drawn_under=_HEADING,
            key=timeline.row_key,
            key_is_named_by="each row of the history names its key",
            clock=OnClock.SCOPE,
            business_dates=valuation.calendar,
            together=timeline.together,
            keeps_deleted=True,
            partitioned=True,
            parts=_parts(timeline),
            folding=_folding(timeline, valuation.output),
        ),
        columns=columns,
    )


def _valuation_inputs(valuation: Valuation, names: Mapping[str, str]) -> tuple[Input, ...]:
    """Each node once, although several references may read it."""
    timeline = valuation.timeline
    history = Input(name=timeline.output, dataset=timeline.output, relation=By(columns=timeline.key))
    matched: dict[str, dict[str, None]] = {}
    read: dict[str, set[str]] = {}
    if valuation.calendar.dataset:
        matched[valuation.calendar.dataset] = {valuation.calendar.column: None}
        read[valuation.calendar.dataset] = {valuation.calendar.column}
    for reference in valuation.references:
        columns = dict.fromkeys(match.theirs for match in reference.on)
        matched.setdefault(reference.dataset, {}).update(columns)
        read.setdefault(reference.dataset, set()).update(
            (*columns, *reference.columns, *((reference.date,) if reference.date else ()))
        )
    others = (
        Input(
            name=names[node],
            dataset=node,
            relation=Matched(columns=tuple(columns)),
            reads=frozenset(read[node]),
        )
        for node, columns in matched.items()
        if node != timeline.output
    )
    return (history, *others)


def _valuation_config(valuation: Valuation, calendar: Calendar) -> NodeConfig:
    """Every part freezes. The fold is not a part: its effect is in the history, which is an input."""
    expressions = [*(column.sql for column in valuation.columns), valuation.where]
    parts: dict[str, object] = {
        **_shape(valuation.timeline),
        "history": valuation.timeline.output,
        "business_dates": [valuation.calendar.dataset, valuation.calendar.column],
        "due_at": int(valuation.calendar.due_at.total_seconds()),
        "timezone": calendar.timezone,
        "references": [_spell(reference) for reference in valuation.references],
        "columns": [[column.name, hashed_sql(column.sql)] for column in valuation.columns],
        "where": hashed_sql(valuation.where),
        "calendar": calendar_part(calendar) if any(map(uses_calendar, expressions)) else None,
    }
    return make_config(parts, frozenset(parts))


def _spell(reference: Reference) -> object:
    on = [[match.theirs, match.reference, match.ours] for match in reference.on]
    return [reference.name, reference.dataset, on, reference.date, reference.required]
