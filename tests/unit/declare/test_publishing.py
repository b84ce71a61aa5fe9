"""Views, change logs, endpoints and triggers, from the project file to nodes."""

import json
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path

import pytest

from strandline.declare import sections
from strandline.declare.project_file import make_json_schema
from strandline.model.condition_text import describe
from strandline.model.endpoints import DEFAULT_RETRY, Ordering, read_headers, read_secrets
from strandline.model.errors import CallError
from strandline.model.publishing import Calculated, ChangeLog, Existing, Trigger, View
from strandline.model.webhook_signatures import parse_secret
from tests.unit.declare.publishing import SECRET, load_trades, report_trades, slugs_of


def test_whatever_is_published_viewed_or_watched_gets_one_change_log(tmp_path: Path) -> None:
    project = load_trades(tmp_path)

    logs = {node.name: node.definition for node in project.nodes if isinstance(node.definition, ChangeLog)}

    assert logs == {
        "trades_changes": ChangeLog(dataset="trades", key=("trade_id",)),
        "large_trades_changes": ChangeLog(dataset="large_trades", key=("trade_id",)),
    }
    assert project.tables["trades_changes"] == "trades_changes"


def test_the_rows_of_an_entity_are_named_by_its_id(tmp_path: Path) -> None:
    entity = 'entities: {asset: {id: symbol, variables: {n: {from: trades, select: "count(*)"}}}}\n'
    views = "views:\n  busy: {from: asset, where: {n: {_gte: 2}}}\n"
    edits = (
        ("publish: [trades]\n", entity + "publish: [trades, asset]\n"),
        ("views:\n", views),
    )
    project = load_trades(tmp_path, *edits)

    assert project.get("asset_changes").definition == ChangeLog(dataset="asset", key=("symbol",))
    view = project.get("busy").definition
    assert isinstance(view, View)
    assert view.key == ("symbol",)


def test_inputs_come_before_readers(tmp_path: Path) -> None:
    names = [node.name for node in load_trades(tmp_path).nodes]

    order = ["trades", "large_trades", "large_trades_changes", "costly"]
    assert sorted(order, key=names.index) == order
    assert names.index("trades_changes") < names.index("large_trade_alert")


def test_a_view_filters_and_calculates(tmp_path: Path) -> None:
    node = load_trades(tmp_path).get("large_trades")

    view = node.definition
    assert isinstance(view, View)
    assert (view.dataset, view.key, describe(view.where)) == ("trades", ("trade_id",), "quantity >= 10000")
    assert view.calculated == (Calculated(name="notional", sql="quantity * price"),)
    assert node.columns == ("trade_id", "symbol", "quantity", "price", "ratio", "at", "notional")


def test_a_trigger_reads_the_log_of_a_dataset_or_a_view(tmp_path: Path) -> None:
    project = load_trades(tmp_path)
    alert, costly = project.get("large_trade_alert"), project.get("costly")

    assert isinstance(alert.definition, Trigger)
    assert isinstance(costly.definition, Trigger)
    assert [input_.dataset for input_ in (*alert.inputs, *costly.inputs)] == [
        "trades_changes",
        "large_trades_changes",
    ]
    assert describe(alert.definition.clear or alert.definition.fire) == "quantity < 9500"
    assert (alert.definition.existing, alert.definition.max_events) == (Existing.QUIET, 10_000)
    assert (costly.definition.endpoints, costly.definition.clear) == (("ops", "desk"), None)
    assert (costly.definition.existing, costly.definition.max_events) == (Existing.DELIVER, 5)


def test_who_is_told_changes_nothing_about_the_events(tmp_path: Path) -> None:
    def hash_of(*edits: tuple[str, str]) -> str:
        return load_trades(tmp_path, *edits).get("large_trade_alert").config.hash

    assert hash_of(("    endpoint: ops\n", "")) == hash_of()
    assert hash_of(("{_lt: 9500}", "{_lt: 9000}")) != hash_of()


def test_an_endpoint_has_defaults_and_every_one_can_be_set(tmp_path: Path) -> None:
    endpoints = load_trades(tmp_path).endpoints
    ops, desk = endpoints["ops"], endpoints["desk"]

    assert (ops.ordering, ops.timeout, ops.rate, ops.in_flight) == (
        Ordering.PER_KEY,
        timedelta(seconds=15),
        None,
        16,
    )
    assert (ops.max_body, ops.retry, ops.allow) == (256 * 1024, DEFAULT_RETRY, ())
    assert (desk.ordering, desk.timeout, desk.rate, desk.in_flight) == (
        Ordering.PARALLEL,
        timedelta(seconds=5),
        20,
        4,
    )
    assert desk.max_body == 1024 * 1024
    assert desk.retry == (timedelta(seconds=1), timedelta(minutes=5))
    assert desk.allow == (ip_network("10.1.0.0/16"),)


@pytest.mark.parametrize("header", ["team", "tenant", "x-host", "upgrade-insecure"])
def test_a_header_whose_name_only_begins_like_one_of_ours_is_sent(tmp_path: Path, header: str) -> None:
    desk = load_trades(tmp_path, ("x-team: risk", f"{header}: risk")).endpoints["desk"]

    assert desk.headers[header] == "risk"


def test_secrets_are_read_only_when_something_is_sent_and_shown_nowhere(tmp_path: Path) -> None:
    desk = load_trades(tmp_path).endpoints["desk"]
    environ = {"NEW_SECRET": SECRET, "OLD_SECRET": SECRET, "DESK_TOKEN": "hunter2"}

    assert read_secrets(desk, environ) == (parse_secret(SECRET),) * 2
    assert read_headers(desk, environ) == {"x-team": "risk", "authorization": "Bearer hunter2"}
    assert "SECRET" not in repr(desk)
    assert "TOKEN" not in repr(desk)


@pytest.mark.parametrize(
    ("environ", "slug", "what"),
    [
        (
            {},
            "secret-not-set",
            "The endpoint `ops` needs `${OPS_SECRET}` of the environment, which is not set.",
        ),
        (
            {"OPS_SECRET": "whsec_c2hvcnQ="},
            "bad-secret",
            "The secret `${OPS_SECRET}` of the endpoint `ops` is not valid:"
            " it has 5 bytes, and 24 to 64 are allowed.",
        ),
    ],
)
def test_a_missing_or_short_secret_is_told_when_it_is_needed_and_the_remedy_settles_it(
    environ: dict[str, str], slug: str, what: str, tmp_path: Path
) -> None:
    ops = load_trades(tmp_path).endpoints["ops"]

    with pytest.raises(CallError) as refused:
        read_secrets(ops, environ)

    assert (refused.value.slug, refused.value.what) == (slug, what)
    assert len(read_secrets(ops, {"OPS_SECRET": SECRET})) == 1


def test_a_header_that_no_header_may_be_is_told_when_it_is_needed(tmp_path: Path) -> None:
    desk = load_trades(tmp_path).endpoints["desk"]

    with pytest.raises(CallError) as refused:
        read_headers(desk, {"DESK_TOKEN": "hunter2\r\nx-more: 1"})

    assert refused.value.slug == "bad-header"
    assert "hunter2" not in str(refused.value)
    assert read_headers(desk, {"DESK_TOKEN": "hunter2"})["authorization"] == "Bearer hunter2"


def test_conditions_on_columns_that_are_not_known_wait_for_the_first_run(tmp_path: Path) -> None:
    csv = ('files: "data/*.jsonl"', 'files: "data/*.csv"')

    assert slugs_of(report_trades(tmp_path, csv, ("{_lt: 9500}}", "{_lt: 9500}, extra: {_gt: 1}}"))) == []


def test_the_json_schema_of_the_sections_completes_their_keys() -> None:
    schema = json.dumps(make_json_schema(sections.SECTIONS))

    for word in ("publish", "views", "calculated", "endpoints", "max_body", "triggers", "existing"):
        assert f'"{word}"' in schema
    assert make_json_schema(sections.SECTIONS)["properties"]["publish"]["type"] == "array"
