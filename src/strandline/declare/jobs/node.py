"""The node of a job: what its rows depend on, and its traits."""

from collections.abc import Mapping

from strandline.declare.settings import calendar_part
from strandline.model.errors import Place
from strandline.model.hashing import make_config
from strandline.model.node import By, Input, Node, NodeConfig, Relation, Via, Whole
from strandline.model.project import Calendar, Job, Language, Mode, Partitioning
from strandline.model.traits import OnClock, Traits, Writing
from strandline.sql.parse import hashed_sql, uses_calendar


def make_node(
    job: Job,
    inputs: tuple[Input, ...],
    lookups: tuple[str, ...],
    calendar: Calendar,
    positions: Mapping[str, tuple[str, ...]],
    columns: tuple[str, ...] = (),
) -> Node:
    return Node(
        name=job.output,
        inputs=inputs,
        definition=job,
        config=_config(job, inputs, lookups, calendar, positions),
        traits=_traits(job),
        columns=columns,
    )


def make_generated_node(
    *,
    name: str,
    place: Place,
    key: tuple[str, ...],
    sql: str,
    inputs: tuple[Input, ...],
    calendar: Calendar,
    columns: tuple[str, ...],
) -> Node:
    """A keyed job that no user wrote: its SQL follows from another entry of the project file."""
    job = Job(
        name=name,
        place=place,
        output=name,
        mode=Mode.KEYED,
        key=key,
        language=Language.SQL,
        code=sql,
        file=place.file,
        config={},
    )
    return make_node(job, inputs, (), calendar, {}, columns)


def _config(
    job: Job,
    inputs: tuple[Input, ...],
    lookups: tuple[str, ...],
    calendar: Calendar,
    positions: Mapping[str, tuple[str, ...]],
) -> NodeConfig:
    """`positions`: by input, the order of its columns, if the code may depend on it."""
    parts: dict[str, object] = {
        str(job.language): hashed_sql(job.code) if job.language is Language.SQL else job.code,
        "function": job.function,
        "modules": {m.name: m.code for m in job.modules},
        "mode": str(job.mode),
        "key": job.key,
        "unique_key": job.unique_key,
        "partition": _partition(job.partition, calendar) if job.partition else None,
        "final_after": job.partition.final_after if job.partition else None,
        "inputs": {i.name: _spell(i.relation) for i in inputs if i.name not in lookups},
        "lookups": sorted(lookups),
        "columns": {name: order for name, order in positions.items() if order},
        "config": dict(job.config),
        "calendar": calendar_part(calendar) if uses_calendar(job.code) else None,
    }
    return make_config(parts, frozenset({"mode", "key", "unique_key", "partition"}))


def _partition(partition: Partitioning, calendar: Calendar) -> object:
    """Days and months depend on the time zone: in another one, each partition contains other rows."""
    return [
        partition.size,
        partition.unit,
        len(partition.by),
        *([calendar.timezone] if partition.unit else []),
    ]


def _spell(relation: Relation) -> object:
    match relation:
        case By(columns=columns):
            return {"by": columns}
        case Via(input=name, on=on):
            return {"via": name, "on": on}
        case Whole():
            return "whole"
        case _:
            return str(relation)


def _traits(job: Job) -> Traits:
    return Traits(
        how=_how(job),
        key=job.key,
        writing=Writing.INSERTS if job.unique_key else Writing.REPLACES,
        clock=OnClock.EVERYTHING if job.uses_as_of else OnClock.NOTHING,
        whole=job.mode is Mode.FULL,
        refuses_widening=job.strict_incremental,
        partitioning=job.partition,
        range_column=job.key[-1] if job.mode in (Mode.CURSOR, Mode.PARTITION) else "",
        scopes_are="partitions"
        if job.partition
        else f"values of {job.key[0]}"
        if job.mode is Mode.CURSOR
        else "keys",
        quiet_parts=("final_after", "lookup"),
    )


def _how(job: Job) -> str:
    if job.mode is Mode.FULL:
        return "Mode `full`: all of it is computed again whenever an input changes."
    return _how_incremental(job) + (
        " It uses :as_of, so all of it is computed again when that moves." if job.uses_as_of else ""
    )


def _how_incremental(job: Job) -> str:
    code, key = "SQL" if job.language is Language.SQL else "Python", ", ".join(job.key)
    if job.partition is not None:
        final = (
            f", once it is {_show_distance(job.partition)} behind the newest"
            if job.partition.final_after
            else ""
        )
        return (
            f"Mode `partition`: the {code} is run for the partitions of {key} that a change touches, "
            f"and each is replaced whole{final}."
        )
    if job.unique_key:
        new = f"rows whose ({', '.join(job.unique_key)}) is new are inserted; nothing is deleted"
        touched = f"the {code} is run for the values of {key} that a change touches"
        return f"Mode `cursor`, appending: {touched}, and {new}."
    what = f"values of {key}" if job.mode is Mode.CURSOR else f"keys ({key})"
    touched = f"the {code} is run for the {what} that a change touches"
    return f"Mode `{job.mode}`: {touched}, and only those are replaced."


def _show_distance(partitioning: Partitioning) -> str:
    """`final_after` as it is declared: a number, or a number of days, hours, minutes or seconds."""
    distance = partitioning.final_after or 0
    if partitioning.unit is None:
        return str(distance)
    units = ((86_400, "days"), (3_600, "hours"), (60, "minutes"), (1, "seconds"))
    return next(f"{distance // size} {name}" for size, name in units if distance % size == 0)
