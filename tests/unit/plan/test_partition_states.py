"""The state of each partition, from what a plan knows. No Spark, no disk.

States are fresh, behind, invalidated, stale, being built and waiting.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from strandline.app.status import read_status
from strandline.model.catalog_records import PartitionVersion
from strandline.model.commits import BuiltPartition, CommitSummary, Invalidation
from strandline.model.condition_json import from_row_filter
from strandline.model.conditions import AllOf, Comparison, Operator
from strandline.model.partitions import Span
from strandline.model.scope import Rows
from strandline.plan.partition_reach import may_hold, may_share
from strandline.plan.partition_states import judge_partitions
from tests.golden.cases import AS_OF, World, tell

KOLKATA = ZoneInfo("Asia/Kolkata")
RANGES = (
    "job {name: ranges, input_datasets: [sale], output_dataset: sale_ranges, incremental: {mode: partition}, "
    "partition: {column: pieces, size: 10, final_after: 5}, sql: select * from sale}"
)
AGAIN = (
    "job {name: again, input_datasets: [sale_ranges], output_dataset: wide_ranges, "
    "incremental: {mode: partition}, "
    "partition: {column: pieces, size: 20}, sql: select * from sale_ranges}"
)
COLUMNS = (("sale_id", "string"), ("shop_id", "string"), ("pieces", "int"), ("sold_at", "timestamp"))


def make_world(*more: str) -> World:
    """`sale` in ranges of ten, with 90-100 and 100-110. 120-130 waits. Everything is up to date."""
    world = tell(("project small", RANGES, AGAIN, "built"))
    for name in ("sale", "sale_ranges"):
        world.tables[name] = replace(world.tables[name], columns=COLUMNS)
    build(world, "sale_ranges", "100-110", "90-100", "110-120", "0-10", "null")
    build(world, "wide_ranges", "0-20", "80-100", "100-120")
    world.records["sale_ranges"] = replace(world.records["sale_ranges"], waiting=("120-130",))
    for line in more:
        world.tell(line)
    return world


def build(world: World, name: str, *keys: str) -> None:
    config = world.records[name].configs[-1].hash
    partitions = {
        key: PartitionVersion(
            dataset=name,
            partition_key=key,
            version=AS_OF,
            config_hash=config,
            schema_hash="",
            location="",
            row_count=3,
            bytes=300,
            table_version=0,
        )
        for key in keys
    }
    world.records[name] = replace(world.records[name], partitions=partitions)


def change_last_commit(world: World, name: str, **changes: object) -> None:
    table = world.tables[name]
    last: CommitSummary = table.commits[-1]
    assert last.metadata is not None
    last = replace(last, metadata=replace(last.metadata, **changes))  # type: ignore[arg-type]
    world.tables[name] = replace(table, commits=(*table.commits[:-1], last))


def invalidate(world: World, name: str, row_filter: Mapping[str, object]) -> None:
    world.tell(f"commit {name} invalidate")
    invalidation = Invalidation(id="i", scope=Rows(where=from_row_filter(row_filter)), reason="checked")
    change_last_commit(world, name, invalidations=(invalidation,))


def judge(world: World, name: str = "sale_ranges") -> dict[str, str]:
    states = judge_partitions(world.project, world.project.get(name), world.plan(), world.observed)
    return {p.partition_key: p.state for p in states}


def test_partitions_stand_in_the_order_of_their_column_and_those_not_final_were_never_built() -> None:
    states = judge(make_world())

    assert list(states) == ["0-10", "90-100", "100-110", "110-120", "120-130", "null"]
    assert set(states.values()) == {"fresh", "never built"}
    assert states["120-130"] == "never built"


def test_a_node_without_partitions_has_none() -> None:
    assert judge(make_world(), "pieces") == {}
    assert judge(tell(("project small", RANGES))) == {}


def test_what_an_older_configuration_wrote_is_stale() -> None:
    world = make_world()
    record = world.records["sale_ranges"]
    older = replace(record.partitions["90-100"], config_hash="older")
    world.records["sale_ranges"] = replace(record, partitions={**record.partitions, "90-100": older})

    assert {key for key, state in judge(world).items() if state == "stale"} == {"90-100"}


@pytest.mark.parametrize(
    ("row_filter", "touched"),
    [
        ({"pieces": {"gte": 100, "lt": 110}}, {"100-110"}),
        ({"pieces": {"gt": 99, "lte": 110}}, {"100-110", "110-120"}),
        ({"pieces": {"in": [5, 111]}}, {"0-10", "110-120"}),
        ({"pieces": {"is_null": True}}, {"null"}),
        ({"pieces": 95, "shop_id": "S"}, {"90-100"}),
        ({"shop_id": "S"}, {"0-10", "90-100", "100-110", "110-120", "null"}),
        ({"a_column_that_is_gone": 1}, {"0-10", "90-100", "100-110", "110-120", "null"}),
    ],
)
def test_an_invalidation_touches_the_partitions_that_may_hold_its_rows(
    row_filter: dict[str, object], touched: set[str]
) -> None:
    world = make_world()

    invalidate(world, "sale", row_filter)

    states = judge(world)
    assert {key for key, state in states.items() if state == "invalidated"} == touched
    assert set(states.values()) <= {"invalidated", "fresh", "never built"}


def test_rows_that_changed_somewhere_leave_every_built_partition_behind_unless_more_is_known() -> None:
    world = make_world("commit sale replace_keys 2 rows")
    invalidate(world, "sale", {"pieces": 95})

    states = judge(world)

    assert states.pop("90-100") == "invalidated"
    assert states.pop("120-130") == "never built"
    assert set(states.values()) == {"behind"}


def test_what_this_run_will_write_to_an_input_is_not_known_before() -> None:
    states = judge(make_world("file sale_events data/second 500 bytes"))

    assert set(states.values()) == {"behind", "never built"}


def test_an_input_that_names_the_partitions_it_replaced_leaves_only_theirs_behind() -> None:
    world = make_world("commit sale_ranges replace_partitions 2 rows")
    change_last_commit(world, "sale_ranges", partitions=(BuiltPartition(partition_key="90-100", rows=2),))

    assert judge(world, "wide_ranges") == {"0-20": "fresh", "80-100": "behind", "100-120": "fresh"}


def test_an_input_that_names_no_partitions_leaves_all_behind() -> None:
    world = make_world("commit sale_ranges replace_partitions 2 rows")

    assert set(judge(world, "wide_ranges").values()) == {"behind"}


def test_what_is_touched_and_being_written_is_building() -> None:
    world = make_world()
    invalidate(world, "sale", {"pieces": 95})
    world.records["sale_ranges"] = replace(world.records["sale_ranges"], building=True)

    states = judge(world)

    assert (states["90-100"], states["0-10"]) == ("building", "fresh")


def test_a_table_that_is_gone_has_no_built_partition() -> None:
    assert set(judge(make_world("drop sale_ranges")).values()) == {"never built"}


def test_a_job_is_behind_since_the_invalidation_it_has_not_processed() -> None:
    world = make_world()
    invalidate(world, "sale", {"pieces": 95})
    table = world.tables["sale"]
    told_at = AS_OF.replace(hour=7)
    world.tables["sale"] = replace(
        table, commits=(*table.commits[:-1], replace(table.commits[-1], committed_at=told_at))
    )

    statuses, _ = read_status(world.workspace)
    by_dataset = {s.dataset: s for s in statuses}

    assert (by_dataset["sale_ranges"].state, by_dataset["sale_ranges"].since) == ("behind", told_at)
    assert by_dataset["sale_ranges"].inputs == ("sale",)
    assert (by_dataset["sale_ranges"].partitioned_by, by_dataset["pieces"].partitioned_by) == (
        "pieces, 10 each",
        "",
    )


def day(number: int, group: str = "") -> Span:
    """A day of March in Kolkata, which begins at 18:30 UTC on the day before."""
    starts = [datetime(2024, 3, n, tzinfo=KOLKATA).astimezone(UTC) for n in (number, number + 1)]
    return Span(group=group, start=starts[0], end=starts[1])


@pytest.mark.parametrize(
    ("operator", "value", "held"),
    [
        (Operator.EQ, date(2024, 3, 5), True),
        (Operator.EQ, date(2024, 3, 6), False),
        (Operator.GTE, datetime(2024, 3, 5, 18, 29, tzinfo=UTC), True),
        (Operator.GTE, datetime(2024, 3, 5, 18, 30, tzinfo=UTC), False),
        (Operator.LT, datetime(2024, 3, 4, 18, 30, tzinfo=UTC), False),
        (Operator.LTE, datetime(2024, 3, 4, 18, 30, tzinfo=UTC), True),
        (Operator.NEQ, date(2024, 3, 5), True),
        (Operator.GT, "a text that no day is compared with", True),
    ],
)
def test_days_are_those_of_the_projects_time_zone(
    operator: Operator, value: date | str, *, held: bool
) -> None:
    row_filter = AllOf(parts=(Comparison(column="sold_at", operator=operator, value=value),))

    assert may_hold(row_filter, ("sold_at",), day(5), KOLKATA) is held


@pytest.mark.parametrize(
    ("operator", "value", "held"),
    [
        (Operator.EQ, 7, True),
        (Operator.EQ, 8, False),
        (Operator.IN, (8, 7), True),
        (Operator.IS_NULL, True, False),
        (Operator.GT, 100, True),
        (Operator.EQ, True, True),
    ],
)
def test_a_group_is_compared_by_its_name_where_that_is_certain(
    operator: Operator, value: int | tuple[int, ...], *, held: bool
) -> None:
    row_filter = AllOf(parts=(Comparison(column="chain_id", operator=operator, value=value),))

    assert may_hold(row_filter, ("chain_id", "sold_at"), day(5, group="7"), KOLKATA) is held


def test_rows_without_value_are_shared_with_no_day() -> None:
    none = Span(group="", start=None, end=None)

    assert may_share(none, none, KOLKATA)
    assert not may_share(none, day(5), KOLKATA)
    assert not may_share(day(4), day(5), KOLKATA)
    assert may_share(day(5, group="a"), day(5, group="b"), KOLKATA)
    assert may_share(None, day(5), KOLKATA)
