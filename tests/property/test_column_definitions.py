"""Whatever is edited, arrives, is applied or left, no column has two definitions or misses something unseen.

A plain model says what each column of a table really is: the definition by which it was filled, and whether
it has missed what came since. It knows nothing of marks.
"""

from dataclasses import dataclass, field, replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from strandline.model.definitions import COLUMN_PART, ROWS_PART, column_of, find_definitions, plan_columns
from strandline.model.hashing import make_config
from strandline.model.node import Node
from strandline.model.traits import ColumnOrigin, Traits
from tests.golden.cases import tell

NAMES = ("a", "b", "c", "d")
INPUTS = ("orders", "visits")
NEEDS = {"c": ("a",), "d": ("b", "c")}
"""The columns that are expressions."""

edits = st.fixed_dictionaries(
    {}, optional={name: st.tuples(st.integers(1, 2), st.sampled_from(INPUTS)) for name in NAMES}
)
"""By declared column: which definition it has, and what it reads."""
steps = st.lists(
    st.one_of(
        st.tuples(st.just("edit"), edits),
        st.tuples(st.just("receive"), st.sampled_from(INPUTS)),
        st.tuples(st.just("run"), st.booleans()),
        st.tuples(st.just("follow"), st.none()),
        st.tuples(st.just("backfill"), st.none()),
        st.tuples(st.just("anew"), st.none()),
    ),
    max_size=25,
)


def declare(columns: dict[str, tuple[int, str]]) -> Node:
    """A node with these columns. An expression whose columns are not declared is left out."""
    digests: dict[str, object] = {}
    origins = []
    for name in sorted(columns):
        definition, dataset = columns[name]
        needs = NEEDS.get(name, ())
        if not digests.keys() >= set(needs):
            continue
        datasets = () if needs else (dataset,)
        digests[name] = [definition, datasets, [digests[need] for need in needs]]
        origins.append(
            ColumnOrigin(
                name=name, part=f"{COLUMN_PART} {name}", read_from="", why="", datasets=datasets, needs=needs
            )
        )
    rows = {f"{ROWS_PART} {d}": d for d in INPUTS if any(d in origin.datasets for origin in origins)}
    parts = {**{f"{COLUMN_PART} {n}": d for n, d in digests.items()}, **dict.fromkeys(rows, "for ever")}
    return replace(
        tell(("project profiles",)).project.get("workspace"),
        config=make_config({"id": ["room"], **parts}, frozenset({"id"})),
        traits=Traits(how="", origins=tuple(origins), row_parts=rows),
    )


@dataclass
class World:
    node: Node
    present: set[str] = field(default_factory=set)
    written: dict[str, str] | None = None
    columns: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """By column of the table: by which definition it was filled, and whether it has missed something."""
    rows: dict[str, str] = field(default_factory=dict)
    """By dataset that names rows: how it does, in the table."""

    def commit(self, applies: tuple[str, ...], *, anew: bool) -> None:
        """One task. Something has arrived that every column has to follow."""
        config = self.node.config
        work = plan_columns(self.node, self.written, config, self.present, applies, anew=anew)
        now = {origin.name: config.parts[origin.part] for origin in self.node.traits.origins}
        before = {} if anew else dict(self.columns)
        assert not work.dropped & set(now)
        assert {origin.name for origin in self.node.traits.origins} >= work.filled | work.followed | work.kept
        for origin in self.node.traits.origins:
            if origin.name in work.filled:
                assert self.present.issuperset(origin.datasets)
                assert work.computed.issuperset(origin.needs), "an expression of two definitions"
        for name in work.followed:
            assert before[name] == (now[name], False), "a column was followed that had missed something"
        left = {name: (of, True) for name, (of, _) in before.items() if name not in work.dropped}
        self.columns = {**left, **{name: (now[name], False) for name in work.computed}}
        for part in work.rows:
            if part in work.named and (anew or work.changes_rows):
                self.rows[part] = config.parts.get(part, "")
            assert part in self.rows, "nobody has read who is named there"
        self.rows = {part: self.rows[part] for part in work.rows}
        self.written = dict(work.config.parts)

    def check(self) -> None:
        """What is recorded is what the table has."""
        if self.written is None:
            return
        found = find_definitions(self.node, self.written, self.node.config, self.present)
        recorded = {column_of(part) for part in self.written if part.startswith(f"{COLUMN_PART} ")}
        assert recorded == self.columns.keys()
        for part in found.current:
            assert self.columns[column_of(part)] == (self.node.config.parts[part], False)
        for part in found.returned:
            assert self.columns[column_of(part)] == (self.node.config.parts[part], True)
        for part in found.changed:
            assert self.columns[column_of(part)][0] != self.node.config.parts[part]
        declared = {origin.part for origin in self.node.traits.origins}
        told = [*found.current, *found.added, *found.returned, *found.changed, *found.waiting]
        assert sorted(told) == sorted(declared)


@settings(max_examples=400)
@example(
    {"a": (1, "orders"), "c": (1, "orders")},
    [("anew", None), ("edit", {"a": (1, "visits"), "c": (1, "orders")}), ("backfill", None)],
)
@given(edits, steps)
def test_no_column_is_of_two_definitions_and_none_misses_anything_unseen(
    first: dict[str, tuple[int, str]], story: list[tuple[str, object]]
) -> None:
    world = World(node=declare(first), present={"orders"})

    for word, what in story:
        config = world.node.config
        match word:
            case "edit":
                assert isinstance(what, dict)
                world.node = declare(what)
            case "receive":
                world.present.add(str(what))
            case "run" if world.written is not None:
                due = find_definitions(world.node, world.written, config, world.present).due
                world.commit(due if what else (), anew=False)
            case "backfill" if world.written is not None:
                found = find_definitions(world.node, world.written, config, world.present)
                filled = found.fillable
                found = find_definitions(world.node, world.written, config, world.present, filled)
                world.commit((*found.due, *filled), anew=False)
                assert world.written is not None
                left = find_definitions(world.node, world.written, config, world.present)
                assert set(left.changed) == set(found.changed) - set(filled)
                assert not left.due
            case "anew":
                world.commit((), anew=True)
        world.check()


@given(edits, st.lists(st.sampled_from(INPUTS), max_size=2), edits)
def test_after_a_run_and_a_backfill_everything_that_can_be_is_as_it_is_declared(
    first: dict[str, tuple[int, str]], received: list[str], second: dict[str, tuple[int, str]]
) -> None:
    world = World(node=declare(first), present=set(received))
    world.commit((), anew=True)
    world.node, world.present = declare(second), set(INPUTS)

    found = find_definitions(world.node, world.written, world.node.config, world.present)
    found = find_definitions(world.node, world.written, world.node.config, world.present, found.fillable)
    world.commit((*found.due, *found.fillable, *found.changed), anew=False)

    assert world.written == world.node.config.parts
