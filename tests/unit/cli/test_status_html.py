"""The page that `status --output html` prints, and the partitions in the verb's other outputs."""

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from strandline.cli import main
from strandline.cli.status import render_status
from strandline.model.kind import NodeKind
from strandline.model.project import Chain, FactDataset, FileSource, Job, Quarantine, Snapshot
from strandline.model.statuses import (
    NOTHING_HELD,
    PARTITION_STATES,
    DatasetStatus,
    HeldNode,
    HeldState,
    HeldWork,
    InvalidationStatus,
    Overview,
    PartitionStatus,
)
from strandline.pages.layered import lay_out
from strandline.pages.status import render_html
from tests.unit.cli.builders import make_shop, no_spark, printed

AT = datetime(2024, 3, 6, 9, 12, 44, tzinfo=UTC)
VOID = {"meta", "link", "br"}
MEAN = '<script src="https://example.org/x.js">alert(1)</script> & "quoted" `it\'s`'


@dataclass
class Page(HTMLParser):
    """A parsed page: its elements by name, and the text in each kind of element."""

    source: str
    opened: list[str] = field(default_factory=list)
    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(self.source)
        self.close()
        assert self.opened == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in set(self.opened):
            self.texts.setdefault(tag, []).append(data)

    def all(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        named = {key.removesuffix("_"): value for key, value in wanted.items()}
        return [
            a
            for t, a in self.elements
            if t == tag and all(v in (a.get(k) or "").split() for k, v in named.items())
        ]


DRAWN = {
    FileSource.kind: ("sources", 0),
    FactDataset.kind: ("facts", 1),
    Quarantine.kind: ("quarantines", 1),
    Snapshot.kind: ("snapshots", 2),
    Chain.kind: ("chains", 2),
    Job.kind: ("jobs", 3),
}


def status(name: str, kind: NodeKind, *inputs: str, state: str = "fresh", **more: object) -> DatasetStatus:
    made = DatasetStatus(
        dataset=name,
        kind=kind,
        drawn_under=DRAWN[kind][0],
        drawn_from=DRAWN[kind][1],
        state=state,
        since=AT,
        table_version=3,
        rows=1234,
        counts={},
        inputs=inputs,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def partition(key: str, state: str) -> PartitionStatus:
    if state == "never built":
        return PartitionStatus(partition_key=key, state=state)
    return PartitionStatus(partition_key=key, state=state, rows=10, bytes=2048, version=AT, table_version=2)


def ranges(*states: str) -> tuple[PartitionStatus, ...]:
    return tuple(partition(f"{i * 10}-{i * 10 + 10}", state) for i, state in enumerate(states))


PROJECT = (
    status("events", FileSource.kind),
    status(
        "sale_facts", FactDataset.kind, "events", counts={"offered": 2000, "accepted": 1234, "duplicates": 0}
    ),
    status(
        "sale_quarantine",
        Quarantine.kind,
        "events",
        state="never built",
        since=None,
        table_version=None,
        rows=0,
    ),
    status("sale", Snapshot.kind, "sale_facts", state="behind", reason="changed rows"),
    status("canonical", Chain.kind, "sale_facts", counts={"waiting": 3}),
    status(
        "ranges",
        Job.kind,
        "sale",
        "canonical",
        state="stale",
        partitioned_by="pieces, 10 each",
        partitions=ranges(*PARTITION_STATES),
    ),
    status("report", Job.kind, "ranges", "events", state="failed", reason=MEAN),
)


def render(*statuses: DatasetStatus, invalidations: tuple[InvalidationStatus, ...] = ()) -> Page:
    return Page(render_html(overview(*statuses, invalidations=invalidations)))


def overview(
    *statuses: DatasetStatus,
    project: str = "shop",
    held: HeldWork = NOTHING_HELD,
    invalidations: tuple[InvalidationStatus, ...] = (),
) -> Overview:
    return Overview(project=project, statuses=statuses, held=held, invalidations=invalidations, made_at=AT)


def test_every_dataset_is_drawn_as_a_link_to_its_row() -> None:
    page = render(*PROJECT)

    rows = {a["id"] for a in page.all("tr") if a.get("id")}
    links = {str(a["href"])[1:] for a in page.all("a", class_="node")}
    assert links == rows == {f"dataset-{s.dataset}" for s in PROJECT}
    assert len(page.all("path", class_="line")) == sum(len(s.inputs) for s in PROJECT)


def test_kind_state_rows_and_since_are_words_in_the_drawing_and_in_the_table() -> None:
    page = render(*PROJECT)

    for place in ("svg", "table"):
        text = page.texts[place]
        assert {"source", "facts", "quarantine", "snapshot", "chain", "job"} <= set(text)
        assert {"fresh", "behind", "never built", "stale", "failed"} <= set(text)
    assert "1,234 rows" in page.texts["svg"]
    assert "1,234" in page.texts["table"]
    assert "2024-03-06 09:12" in page.texts["svg"]
    assert {"2,000 offered", "3 waiting", "changed rows"} <= set(page.texts["table"])
    assert "0 duplicates" not in page.texts["table"]


def test_every_link_leads_to_something_on_the_page_and_ids_are_there_once() -> None:
    page = render(*PROJECT, invalidations=(invalidation("canonical"),))

    ids = [a["id"] for _, a in page.elements if a.get("id")]
    targets = {a["href"] for a in page.all("a")}
    labels = {
        label
        for _, a in page.elements
        if a.get("aria-labelledby")
        for label in str(a["aria-labelledby"]).split()
    }
    assert len(ids) == len(set(ids))
    assert {str(t)[1:] for t in targets} <= set(ids)
    assert labels <= set(ids)


def test_nothing_is_asked_for_from_outside() -> None:
    page = render(*(s for s in PROJECT if s.dataset != "report"))

    addresses = {
        a[name]
        for _, a in page.elements
        for name in ("src", "href", "xlink:href", "action", "data")
        if a.get(name)
    }
    assert all(str(address).startswith("#") or address == "data:," for address in addresses)
    assert not re.search(r"https?:|//\w|@import|url\(", page.source)
    assert page.all("script") == []
    assert [str(a["content"]).split(";")[0] for a in page.all("meta") if "http-equiv" in a] == [
        "default-src 'none'"
    ]


def test_what_was_said_elsewhere_is_text_and_nothing_else() -> None:
    odd = status(
        MEAN, FileSource.kind, reason=MEAN, partitioned_by=MEAN, partitions=(partition(MEAN, "stale"),)
    )
    invalidated = invalidation("sale", scope=MEAN, reason=MEAN, processed_at_by_job={MEAN: None})

    page = Page(
        render_html(
            overview(
                odd, status("reader", Job.kind, MEAN, state=MEAN), project=MEAN, invalidations=(invalidated,)
            )
        )
    )

    assert page.all("script") == []
    assert page.texts["h1"][0] == MEAN
    assert page.texts["td"].count(MEAN) == 6  # a state, what is read, two reasons, what is covered, a job
    assert {a["href"] for a in page.all("a", class_="node")} == {
        f"#{a['id']}" for a in page.all("tr") if a.get("id")
    }


def test_a_drawing_says_where_a_dataset_stands() -> None:
    layout = lay_out(
        {s.dataset: s.inputs for s in PROJECT},
        {
            "events": 0,
            "sale_facts": 1,
            "sale_quarantine": 1,
            "sale": 2,
            "canonical": 2,
            "ranges": 3,
            "report": 3,
        },
        box=60,
        line=6,
        gap=10,
    )

    assert [{name for name, _ in column} for column in layout.columns] == [
        {"events"},
        {"sale_facts", "sale_quarantine"},
        {"sale", "canonical"},
        {"ranges"},
        {"report"},
    ]
    for column in layout.columns:
        middles = [layout.middle[place] for place in column]
        assert all(below - above >= 70 for above, below in pairwise(middles))
    # The line past three columns has its own place in each, and no box covers it.
    (long,) = [passed for passed in layout.lines if passed[0][0] == "events" and passed[-1][0] == "report"]
    assert [column for _, column in long] == [0, 1, 2, 3, 4]
    for place in long[1:-1]:
        assert all(abs(layout.middle[place] - layout.middle[box]) >= 43 for box in layout.columns[place[1]])


def test_lines_do_not_cross_where_they_need_not() -> None:
    """Four sources, each with a reader, declared in the opposite order."""
    inputs: dict[str, tuple[str, ...]] = {f"source{i}": () for i in range(4)}
    inputs |= {f"reader{i}": (f"source{3 - i}",) for i in range(4)}

    layout = lay_out(inputs, dict.fromkeys(inputs, 0), box=60, line=6, gap=10)

    assert [name for name, _ in layout.columns[1]] == ["reader3", "reader2", "reader1", "reader0"]
    assert {layout.middle[passed[0]] - layout.middle[passed[-1]] for passed in layout.lines} == {0.0}


def test_each_partition_is_a_cell_with_a_title_and_each_state_is_counted_in_words() -> None:
    page = render(*PROJECT)

    titles = [text for text in page.texts["title"] if re.match(r"\d+-\d+:", text)]
    assert titles[0] == "0-10: stale, 10 rows, 2.0 kB, built 2024-03-06 09:12:44 UTC at table version 2"
    assert [t.split(":")[1].split(",")[0].strip() for t in titles] == list(PARTITION_STATES)
    assert all(page.texts["th"].count(state) == 1 for state in PARTITION_STATES)
    assert {"0-10", "10-20", "20-30", "30-40", "40-50"} <= set(page.texts["th"])
    assert "50-60" not in page.texts["th"]  # it is fresh
    assert any("an upper bound" in text for text in page.texts["td"])


def test_a_strip_of_many_partitions_shows_the_worst_of_several_in_a_cell_and_says_so() -> None:
    states = ["fresh"] * 1500
    states[4:6] = ["never built", "invalidated"]

    page = render(status("many", Job.kind, partitioned_by="pieces, 10 each", partitions=ranges(*states)))

    titles = [text for text in page.texts["title"] if re.match(r"\d+-\d+ to ", text)]
    assert len(titles) == 375
    assert titles[1] == "40-50 to 70-80: 1 invalidated, 1 never built, 2 fresh"
    assert len(page.all("g", class_="state-invalidated")) == 3  # the cell, and beside two words
    assert any(
        "A cell stands for 4 partitions and shows the worst state among them." in text
        for text in page.texts["figcaption"]
    )


def test_at_most_fifty_partitions_are_listed_of_every_state_some_and_the_rest_is_counted() -> None:
    states = ["stale"] * 90 + ["behind"] * 57 + ["invalidated"] * 3 + ["fresh"] * 10

    page = render(status("many", Job.kind, partitioned_by="pieces, 10 each", partitions=ranges(*states)))

    assert len([key for key in page.texts["th"] if re.fullmatch(r"\d+-\d+", key)]) == 50
    assert page.texts["td"].count("invalidated") == 3
    assert "And 100 more: 66 stale, 34 behind. `strandline status many` lists them all." in page.texts["p"]


def invalidation(dataset: str, **more: object) -> InvalidationStatus:
    jobs = {"ranges": None, "report": AT + timedelta(minutes=2)}
    made = InvalidationStatus(
        id="1",
        dataset=dataset,
        scope="pieces = 7",
        reason="reorg",
        created_at=AT,
        table_version=4,
        processed_at_by_job=jobs,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def test_a_pending_invalidation_says_which_jobs_have_processed_it() -> None:
    page = render(*PROJECT, invalidations=(invalidation("canonical"),))

    text = "".join(page.texts["td"])
    assert "pieces = 7" in text
    assert "ranges: still to process" in text
    assert "report: processed 2024-03-06 09:14:44" in text


def test_a_page_without_anything_is_a_page() -> None:
    page = render()

    assert "There is no dataset." in page.texts["p"]
    assert "2024-03-06 09:12:44" in page.texts["time"]


def test_what_waits_for_a_backfill_is_told_first_with_the_call_that_settles_it() -> None:
    frozen = HeldNode(
        node="sale",
        state=HeldState.FROZEN,
        reason=f"`{MEAN}` changed",
        changed=(MEAN,),
        partitions=(),
        written_at=AT,
        waiting_rows=5,
        waiting_since=AT,
        backfill_rows=7,
    )
    held = HeldWork(nodes=(frozen,), command="strandline backfill sale --all")

    page = Page(render_html(overview(*PROJECT, held=held)))

    assert page.texts["h2"][0] == "Waits for a backfill"
    assert page.texts["code"] == ["strandline backfill sale --all"]
    assert any("5 new rows wait for it since 2024-03-06 09:12:44" in text for text in page.texts["li"])
    assert page.all("script") == []


def test_text_with_a_name_counts_partitions_and_lists_those_that_are_not_fresh() -> None:
    with_name = render_status(overview(*PROJECT[5:6]), with_partitions=True).splitlines()
    without = render_status(overview(*PROJECT)).splitlines()

    assert (
        "ranges has 6 partitions of pieces, 10 each: 1 stale, 1 invalidated, 1 behind, 1 never built, "
        "1 building, 1 fresh." in with_name
    )
    assert [line.split()[0] for line in with_name if re.match(r"  \d+-\d+ ", line)] == [
        "0-10",
        "10-20",
        "20-30",
        "30-40",
        "40-50",
    ]
    assert not [line for line in without if line.startswith("ranges has")]


def test_the_verb_prints_a_page_and_starts_no_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = make_shop(tmp_path)

    with no_spark(monkeypatch):
        code = shop.call("status", "--output", "html")

    page = Page(capsys.readouterr().out.rstrip("\n"))
    assert code == 0
    assert page.source.startswith("<!DOCTYPE html>")
    assert {"dataset-order_events", "dataset-orders", "dataset-customer_totals"} <= {
        a["id"] for a in page.all("tr") if a.get("id")
    }


def test_other_verbs_print_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_shop(tmp_path)

    code = main(["plan", "--output", "html", "--project", str(tmp_path)])

    output = capsys.readouterr()
    assert (code, output.out) == (2, "")
    assert "'html'" in output.err
    assert output.err.rstrip().endswith("[call]")


def test_json_has_partitions_for_partitioned_datasets_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = make_shop(tmp_path)
    file = tmp_path / "strandline.yaml"
    flow = (
        "{name: days, input_datasets: [orders], output_dataset: order_days, incremental: {mode: partition}, "
        "partition: {column: changed_at, unit: day}, sql: select * from orders}"
    )
    file.write_text(file.read_text().rstrip() + f"\n  - {flow}\n")

    code = shop.call("status", "--output", "json")

    datasets = {d["dataset"]: d for d in printed(capsys)["datasets"]}
    assert code == 0
    assert datasets["order_days"]["partitions"] == []
    assert all("partitions" not in d for name, d in datasets.items() if name != "order_days")
