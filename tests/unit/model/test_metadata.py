"""The metadata of a commit survives serialisation, and nothing else is mistaken for it (L6)."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.model.commits import BuiltPartition, CommitMetadata, Invalidation, Operation, WrittenConfig
from strandline.model.condition_json import from_row_filter
from strandline.model.files import FileRead
from strandline.model.metadata import file_from_dict, file_to_dict, find_metadata, to_json
from strandline.model.plan import Cursor
from strandline.model.scope import Described, Keys, Partitions, Range, Rows
from tests.unit.model.scopes import scopes, valued_scopes

numbers = st.integers(-(2**63), 2**63 - 1)
cursors = st.builds(Cursor, table_id=st.text(), version=numbers)
configs = st.builds(WrittenConfig, hash=st.text(), parts=st.dictionaries(st.text(), st.text(), max_size=3))
files = st.builds(
    FileRead,
    path=st.text(),
    revision=numbers,
    bytes=numbers,
    rows=numbers,
    digest=st.text(),
    size=numbers,
    modified_ns=numbers,
    seen_unchanged=numbers,
    unfinished=numbers,
    same_as=st.text(),
)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)
json_objects = st.dictionaries(st.text(), json_values, max_size=2)
invalidations = st.builds(
    Invalidation,
    id=st.text(),
    scope=valued_scopes,
    reason=st.text(),
    source_event=json_objects,
)
partitions = st.lists(
    st.builds(BuiltPartition, partition_key=st.text(), rows=numbers),
    max_size=4,
    unique_by=lambda p: p.partition_key,
)
metadatas = st.builds(
    CommitMetadata,
    run=st.text(),
    task=st.text(),
    node=st.text(),
    token=numbers,
    operation=st.sampled_from(Operation),
    inputs=st.dictionaries(st.text(), cursors, max_size=3),
    scope=scopes,
    cause=st.text(),
    config=configs,
    whole=st.booleans(),
    as_of=st.text(),
    counts=st.dictionaries(st.text(), numbers, max_size=3),
    files=st.lists(files, max_size=3).map(tuple),
    rows=numbers,
    schema_hash=st.text(),
    # They do not have an order, so they are written by name.
    partitions=partitions.map(lambda found: tuple(sorted(found, key=lambda p: p.partition_key))),
    waiting=st.lists(st.text(), max_size=3).map(tuple),
    invalidations=st.lists(invalidations, max_size=2).map(tuple),
    readable_from=numbers,
    adopted=st.lists(numbers, max_size=3).map(tuple),
    onto=st.integers(-1, 2**63 - 1),
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)

EXAMPLE = CommitMetadata(
    run="run-1",
    task="run-1/orders/7",
    node="orders",
    token=7,
    operation=Operation.REPLACE_KEYS,
    inputs={"sales": Cursor(table_id="abc", version=3)},
    scope=Keys(count=3),
    cause="new_input",
    config=WrittenConfig(hash="0123456789abcdef", parts={"sql": "fedcba"}),
    whole=False,
    as_of="2024-01-01T00:00:00Z",
    counts={"accepted": 3},
    files=(FileRead(path="in/a.jsonl", revision=1, bytes=30, rows=3, digest="d", size=30, modified_ns=5),),
)

REORG = replace(
    EXAMPLE,
    schema_hash="5c",
    partitions=(
        BuiltPartition(partition_key="1/0-10", rows=3),
        BuiltPartition(partition_key="1/10-20", rows=0),
    ),
    waiting=("1/20-30", "1/100-110"),
    invalidations=(
        Invalidation(
            id="00000000-0000-5000-8000-000000000001",
            scope=Range(column="block_number", low=5, high=9, where=from_row_filter({"chain_id": 1})),
            reason="reorg",
            source_event={"old_tip": "0xa", "new_tip": "0xb", "fork_block": 4},
        ),
        Invalidation(id="2", scope=Partitions(names=("1/0-10",)), reason="a person's"),
    ),
)
ADDED = ("schema_hash", "partitions", "waiting", "invalidations")


@given(metadatas)
def test_metadata_reads_back_as_it_was_written(metadata: CommitMetadata) -> None:
    text = to_json(metadata)

    assert find_metadata(text) == metadata
    assert "\n" not in text


def test_a_reorgs_commit_reads_back_with_its_partitions_what_waits_and_its_invalidations() -> None:
    assert find_metadata(to_json(REORG)) == REORG


def test_partitions_are_the_same_text_in_any_order() -> None:
    turned = replace(REORG, partitions=REORG.partitions[::-1])

    assert to_json(turned) == to_json(REORG)


def test_a_commit_without_them_says_nothing_of_partitions_and_invalidations() -> None:
    assert not set(json.loads(to_json(EXAMPLE))) & set(ADDED)


@pytest.mark.parametrize("name", ADDED)
def test_what_an_older_strandline_did_not_write_is_empty(name: str) -> None:
    text = json.dumps({key: value for key, value in json.loads(to_json(REORG)).items() if key != name})

    assert find_metadata(text) == replace(REORG, **{name: getattr(EXAMPLE, name)})


@pytest.mark.parametrize("name", ["id", "scope", "reason"])
def test_an_invalidation_that_lacks_a_field_makes_its_commit_not_ours(name: str) -> None:
    value = json.loads(to_json(REORG))
    del value["invalidations"][0][name]

    assert find_metadata(json.dumps(value)) is None


def test_a_scope_that_an_older_strandline_wrote_as_text_is_read() -> None:
    older = json.dumps({**json.loads(to_json(EXAMPLE)), "scope": "12 keys"})

    assert find_metadata(older) == replace(EXAMPLE, scope=Described(text="12 keys"))


OLDER_INVALIDATIONS = [
    {
        "id": "1",
        "scope": "row_range",
        "row_filter": {"chain_id": {"eq": 1}, "block_number": {"gte": 5, "lte": 9}},
        "reason": "reorg",
        "source_event": {"fork_block": 4},
    },
    {
        "id": "2",
        "scope": "partition",
        "partition_key": "0-10",
        "row_filter": {"block_number": {"gte": 0, "lt": 10}},
        "reason": "a bad disk",
    },
]


def test_invalidations_that_an_older_strandline_wrote_in_columns_are_read() -> None:
    older = json.dumps({**json.loads(to_json(EXAMPLE)), "invalidations": OLDER_INVALIDATIONS})

    read = find_metadata(older)

    assert read is not None
    assert read.invalidations == (
        Invalidation(
            id="1",
            scope=Rows(where=from_row_filter({"chain_id": 1, "block_number": {"gte": 5, "lte": 9}})),
            reason="reorg",
            source_event={"fork_block": 4},
        ),
        Invalidation(
            id="2",
            scope=Partitions(names=("0-10",), where=from_row_filter({"block_number": {"gte": 0, "lt": 10}})),
            reason="a bad disk",
        ),
    )


@pytest.mark.parametrize("row_filter", [None, 5, {"block_number": {"near": 5}}])
def test_an_older_invalidation_without_a_filter_makes_its_commit_not_ours(row_filter: object) -> None:
    value = {**json.loads(to_json(EXAMPLE)), "invalidations": [{**OLDER_INVALIDATIONS[0]}]}
    value["invalidations"][0]["row_filter"] = row_filter

    assert find_metadata(json.dumps(value)) is None
    del value["invalidations"][0]["row_filter"]
    assert find_metadata(json.dumps(value)) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("partitions", ["0-10"]),
        ("partitions", {"0-10": "3"}),
        ("partitions", {"0-10": True}),
        ("partitions", None),
        ("waiting", "0-10"),
        ("invalidations", {}),
        ("invalidations", ["reorg"]),
        ("schema_hash", 5),
    ],
)
def test_a_field_of_another_type_makes_its_commit_not_ours(name: str, value: object) -> None:
    assert find_metadata(json.dumps({**json.loads(to_json(REORG)), name: value})) is None


@given(files)
def test_a_file_reads_back_as_it_was_written(file: FileRead) -> None:
    assert file_from_dict(json.loads(json.dumps(file_to_dict(file)))) == file


def test_equal_metadata_is_written_as_the_same_text() -> None:
    turned = json.loads(to_json(EXAMPLE), object_pairs_hook=lambda pairs: dict(reversed(pairs)))

    assert to_json(find_metadata(json.dumps(turned)) or pytest.fail("not found")) == to_json(EXAMPLE)


def test_a_field_that_a_later_strandline_adds_is_passed_over() -> None:
    text = json.dumps({**json.loads(to_json(EXAMPLE)), "mood": "calm"})

    assert find_metadata(text) == EXAMPLE


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "strandline",
        '"strandline"',
        '{"strandline": 1}',
        '["strandline", 1]',
        '{"strandline": 1, "run":',
        "[" * 100_000 + '"strandline"',
        '{"strandline": ' + "9" * 5000 + "}",
    ],
    ids=["none", "empty", "word", "text", "nothing else", "list", "cut off", "too deep", "too long a number"],
)
def test_what_is_not_ours_is_none(text: str | None) -> None:
    assert find_metadata(text) is None


@pytest.mark.parametrize("marker", [0, 2, "1", True, 1.0, None])
def test_another_format_is_not_ours(marker: object) -> None:
    text = json.dumps({**json.loads(to_json(EXAMPLE)), "strandline": marker})

    assert find_metadata(text) is None


@pytest.mark.parametrize("name", sorted(set(json.loads(to_json(EXAMPLE))) - {"strandline", "rows"}))
def test_metadata_that_lacks_a_field_is_not_ours(name: str) -> None:
    text = json.dumps({key: value for key, value in json.loads(to_json(EXAMPLE)).items() if key != name})

    assert find_metadata(text) is None


@given(st.sampled_from(sorted(json.loads(to_json(REORG)))), anything)
def test_any_value_in_any_field_is_read_or_refused_and_never_raises(name: str, value: object) -> None:
    read = find_metadata(json.dumps({**json.loads(to_json(REORG)), name: value}))

    assert read is None or find_metadata(to_json(read)) == read
