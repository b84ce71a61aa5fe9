"""A new kind of node is a definition, a section and a worker, with one line in each of two tables.

Every verb then knows it. The kind of this test counts the rows of any dataset by the values of a column.
Nothing in the engine names it.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.cli import main
from strandline.compute.compare import (
    compared_columns,
    replace_differences,
    stage_differences,
    tag,
    write_whole,
)
from strandline.compute.key_set import find_keys, read_own
from strandline.compute.keys import typed_key
from strandline.declare import sections
from strandline.declare.loading import Loading
from strandline.declare.section import Section
from strandline.declare.spec_types import Strict
from strandline.dispatch.workers import WORKERS
from strandline.lake.reads import SIGN
from strandline.lake.work import NEW, OLD, Expected, Prepared, Work
from strandline.model.columns import CONFIG, DELETED, KEY
from strandline.model.errors import Place
from strandline.model.hashing import make_config
from strandline.model.kind import NodeKind
from strandline.model.node import By, Input, Node
from strandline.model.plan import Cause, Strategy
from strandline.model.report import suggest
from strandline.model.scope import EVERYTHING, Keys, Scope
from strandline.model.traits import Traits
from strandline.sql.known_columns import Known
from tests.harness import TestProject

pytestmark = pytest.mark.spark


# --- the kind: its definition ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many rows of a dataset have each value of a column."""

    kind: ClassVar[NodeKind] = NodeKind("tally")
    dataset: str
    by: str


# --- its section of the project file ---


class TallySpec(Strict):
    of: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TallyDraft:
    name: str
    place: Place
    spec: TallySpec
    guessed: Collection[str] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.spec.of,)

    def settle(self, loading: Loading) -> "TallyDraft":
        if self.spec.of not in loading.tables:
            what = f"the tally `{self.name}` counts `{self.spec.of}`, which is not a dataset."
            remedy = suggest(self.spec.of, loading.tables, "datasets")
            loading.report.add("unknown-dataset", what, remedy, self.place)
        return self

    def build(self, loading: Loading) -> None:
        by, dataset = self.spec.by, loading.tables.get(self.spec.of, "")
        types = {by: None, "n": "bigint"}
        loading.known[self.name] = Known(types=types, complete=True, names=frozenset(types), unique=((by,),))
        loading.names[self.name] = (self.name,)
        loading.nodes.append(
            Node(
                name=self.name,
                inputs=(Input(name=self.spec.of, dataset=dataset, relation=By(columns=(by,))),),
                definition=Tally(dataset=dataset, by=by),
                config=make_config({"of": self.spec.of, "by": by}, frozenset({"by"})),
                traits=Traits(
                    how=f"The rows of `{self.spec.of}` are counted for each {by} that a change touches.",
                    key=(by,),
                    key_is_named_by="each row is counted under its own value",
                    drawn_under="tallies",
                    answers_invalidations=False,
                    runs_code=False,
                ),
                columns=(by, "n"),
            )
        )


def load(tallies: Mapping[str, TallySpec], loading: Loading) -> None:
    for name, spec in tallies.items():
        place = loading.document.place("tallies", name)
        if loading.registry.claim(name, "tally", place):
            loading.tables[name] = name
            loading.drafts[name] = TallyDraft(name=name, place=place, spec=spec)


TALLIES = Section(key="tallies", spec=TallySpec, load=load, counted_as="tally")


# --- its worker ---


class Counter:
    def prepare(self, work: Work) -> Prepared:
        tally = tally_of(work)
        rows = count(work.read_live(tally.dataset), tally.by).withColumns(
            {KEY: typed_key((tally.by,)), DELETED: F.lit(False), CONFIG: F.lit(work.config.hash)}
        )
        own, full = None if work.task.overwrite else work.read_own(), work.input_rows[tally.dataset]
        if own is None:
            return write_whole(work, rows, rows_full=full)
        whole, read = work.task.strategy is Strategy.FULL, full
        scope: Scope = EVERYTHING
        if not whole:
            keys = find_keys(work, self.find_touched(work, tally))
            rows, own, read = keys.restrict(rows, F.col(KEY)), read_own(work, keys), keys.rows
            scope = Keys(count=keys.count)
        sides = tag(rows, NEW).unionByName(tag(own.where(~F.col(DELETED)), OLD))
        compared = compared_columns(sides, backfill=work.task.cause is Cause.PERSON)
        staged = stage_differences(work, sides, compared, bury=True)
        return replace_differences(work, staged, rows_read=read, rows_full=full, scope=scope, whole=whole)

    def find_touched(self, work: Work, tally: Tally) -> DataFrame:
        return work.read_changes(tally.dataset).select(typed_key((tally.by,)).alias(KEY))

    def expect(self, work: Work) -> Expected:
        tally, own = tally_of(work), work.read_own()
        assert own is not None
        rows = count(work.read_live(tally.dataset), tally.by)
        return Expected(rows=rows, published=own.where(~F.col(DELETED)), sampled_by=(tally.by,))


def tally_of(work: Work) -> Tally:
    assert isinstance(work.node.definition, Tally)
    return work.node.definition


def count(rows: DataFrame, by: str) -> DataFrame:
    return rows.groupBy(by).agg(F.count(F.lit(1)).alias("n"))


# --- the end of the kind ---

YAML = """
    project: shop
    sources:
      events: {files: "data/*.jsonl"}
    datasets:
      sale:
        from: events
        columns: {id: id, shop: shop, v: {path: v, type: int}}
        record_set: {key: [id], order_by: [v]}
    tallies:
      per_shop: {of: sale, by: shop}
      shops_by_size: {of: sizes, by: size}
    jobs:
      - name: sizes
        input_datasets: [per_shop]
        output_dataset: sizes
        incremental: {mode: keyed, key: [shop]}
        sql: SELECT shop, CASE WHEN n > 1 THEN 'large' ELSE 'small' END AS size FROM per_shop
"""

Ask = Callable[..., Any]


@pytest.fixture(scope="module", autouse=True)
def _known() -> Iterator[None]:
    """The kind is in both tables."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "SECTIONS", (*sections.SECTIONS, TALLIES))
        patch.setitem(WORKERS, Tally.kind, Counter())
        yield


def declare(folder: Path) -> TestProject:
    """A tally that a job reads, and a tally of that job's output."""
    made = TestProject.create(folder, YAML)
    made.lines("data/1.jsonl", sale("a", "north"), sale("b", "north"), sale("c", "south"))
    return made


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> TestProject:
    """One run. Never changed; tests work on copies."""
    made = declare(tmp_path_factory.mktemp("built") / "shop")
    made.run()
    return made


@pytest.fixture
def project(built: TestProject, tmp_path: Path) -> TestProject:
    return built.copy(tmp_path / "shop")


@pytest.fixture
def ask(project: TestProject, capfd: pytest.CaptureFixture[str]) -> Ask:
    """Calls a verb as a shell would; the JSON document that it prints."""

    def call(*words: str, code: int = 0, of: TestProject = project) -> Any:
        ended = main([*words, "--project", str(of.folder), "--output", "json"])
        printed = capfd.readouterr()
        assert ended == code, printed.err
        return json.loads(printed.out)

    return call


def sale(name: str, shop: str, v: int = 1) -> dict[str, object]:
    return {"id": name, "shop": shop, "v": v}


def test_a_new_kind_is_checked_and_planned(
    ask: Ask, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    never_built = declare(tmp_path / "never built")

    assert main(["check", "--project", str(never_built.folder)]) == 0
    assert "1 source, 1 fact dataset, 1 job, 2 tallies." in capfd.readouterr().out
    planned = [(t["node"], t["kind"]) for t in ask("plan", of=never_built)["tasks"]]
    assert planned[-3:] == [("per_shop", "tally"), ("sizes", "job"), ("shops_by_size", "tally")]


def test_a_new_kind_lives_through_the_verbs(project: TestProject, ask: Ask) -> None:
    assert project.rows("per_shop") == {("north", 2), ("south", 1)}
    assert project.rows("shops_by_size") == {("large", 1), ("small", 1)}
    assert ask("run")["tasks"] == []

    project.lines("data/2.jsonl", sale("d", "east"), sale("c", "north", v=2))

    assert {d["dataset"]: d["state"] for d in ask("status")["datasets"]}["per_shop"] == "behind"
    (explained,) = ask("explain", "per_shop")["nodes"]
    assert (explained["kind"], explained["next"]["strategy"]) == ("tally", "recompute")
    assert explained["inputs"][0]["why"] == "each row is counted under its own value"

    tasks = {t["node"]: t for t in ask("run")["tasks"]}

    done = tasks["per_shop"]
    assert (done["kind"], done["status"], done["rows_read"], done["rows_written"]) == ("tally", "done", 3, 2)
    assert project.rows("per_shop") == {("north", 3), ("east", 1)}
    assert project.rows("shops_by_size") == {("large", 1), ("small", 1)}
    verified = ask("verify", "per_shop", "shops_by_size")["datasets"]
    assert [(d["result"], d["compared_rows"]) for d in verified] == [("equal", 2), ("equal", 2)]
    (status,) = ask("status", "per_shop")["datasets"]
    assert (status["kind"], status["state"], status["rows"]) == ("tally", "fresh", 2)

    (rebuilt,) = [t for t in ask("rebuild-catalog")["tables"] if t["dataset"] == "per_shop"]

    assert rebuilt["cursors"] == 1
    (again,) = ask("status", "per_shop")["datasets"]
    assert (again["kind"], again["state"], again["rows"]) == ("tally", "fresh", 2)
    assert "per_shop" not in {t["node"] for t in ask("run")["tasks"]}
    project.assert_verified("per_shop", "shops_by_size")


def test_another_configuration_of_a_new_kind_is_held_until_a_backfill(
    project: TestProject, ask: Ask, capfd: pytest.CaptureFixture[str]
) -> None:
    project.declare(
        YAML.replace("{of: sale, by: shop}", "{of: sale, by: v}")
        .replace("[shop]", "[v]")
        .replace("SELECT shop", "SELECT v")
    )

    assert {d["dataset"]: d["state"] for d in ask("status")["datasets"]}["per_shop"] == "frozen"
    (explained,) = ask("explain", "per_shop")["nodes"]
    assert "by" in explained["frozen"]

    ask("backfill", "per_shop", "--all")

    assert project.rows("per_shop") == {(1, 3)}
    project.assert_verified("per_shop")
    assert main(["status", "--project", str(project.folder), "--output", "html"]) == 0
    assert ">tallies<" in capfd.readouterr().out


def test_verify_finds_what_the_worker_of_a_new_kind_forgot(
    project: TestProject, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_come(_: Counter, work: Work, tally: Tally) -> DataFrame:
        come = work.read_changes(tally.dataset).where(F.col(SIGN) > 0)
        return come.select(typed_key((tally.by,)).alias(KEY))

    monkeypatch.setattr(Counter, "find_touched", find_come)
    project.lines("data/2.jsonl", sale("c", "north", v=2))

    ask("run")

    (verified,) = ask("verify", "per_shop", code=4)["datasets"]
    assert (verified["result"], verified["differing_rows"]) == ("different", 1)


def test_a_mistake_in_the_section_of_a_new_kind_is_reported_like_any_other(
    project: TestProject, capfd: pytest.CaptureFixture[str]
) -> None:
    project.declare(YAML.replace("by: shop}", "bye: shop}").replace("of: sizes", "of: size"))

    assert main(["check", "--project", str(project.folder)]) == 2

    reported = capfd.readouterr().err
    assert "unknown key `bye` in `tallies.per_shop`.\n  Did you mean `by`?" in reported
    assert (
        "the tally `shops_by_size` counts `size`, which is not a dataset.\n  Did you mean `sizes`?"
        in reported
    )
