"""`verify`: recompute in full over the recorded input versions and compare row by row."""

import shutil
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from strandline.dispatch.desk import Desk, Pins
from strandline.model.catalog_records import NodeRecord
from strandline.model.commits import WrittenConfig
from strandline.model.errors import StrandlineError
from strandline.model.node import Node
from strandline.model.plan import Plan
from strandline.model.thresholds import Thresholds
from strandline.model.timeline import KeyStatus
from strandline.model.verified import VerifiedDataset, VerifyOutcome
from strandline.plan import Observed, current_config, find_frozen, find_stale, select_nodes

from .clock import now, parse_instant
from .planning import RunRequest
from .run import make_desk, run_name
from .workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """What `verify` asks for."""

    names: tuple[str, ...] = ()
    """Empty: all that have been built."""
    sample_percent: float | None = None


def check_names(workspace: Workspace, request: VerifyRequest) -> None:
    """Raise what is wrong with the names, as `verify` would."""
    if request.names:
        select_nodes(workspace.project, " ".join(request.names))


def verify(
    workspace: Workspace,
    names: tuple[str, ...],
    sample_percent: float | None,
    progress: Callable[[VerifiedDataset], None],
) -> VerifyOutcome:
    """Verify the named datasets, or all that have been built."""
    observed = workspace.observe()
    chosen = select_nodes(workspace.project, " ".join(names)) if names else None
    nodes = [
        n
        for n in workspace.project.nodes
        if (chosen is None and n.name in observed.tables) or (chosen is not None and n.name in chosen)
    ]
    if chosen is not None and len(chosen) > len(names):
        # A fact dataset's name means three nodes. A quarantine into which nothing ever went has no table to
        # verify.
        nodes = [n for n in nodes if not n.traits.may_lack_table or n.name in observed.tables]
    scratch = tempfile.mkdtemp(prefix="strandline-verify-")
    try:
        desk = _open_desk(workspace, observed, scratch)
        with ThreadPoolExecutor(max_workers=workspace.project.settings.workers) as pool:
            futures = [pool.submit(_verify_one, desk, observed, node, sample_percent) for node in nodes]
            results = []
            for future in futures:
                results.append(future.result())
                progress(results[-1])
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return VerifyOutcome(datasets=tuple(results))


def _verify_one(desk: Desk, observed: Observed, node: Node, sample_percent: float | None) -> VerifiedDataset:
    record = observed.view.nodes.get(node.name)
    cursors = dict(record.cursors) if record else {}
    versions = {name: cursor.version for name, cursor in cursors.items()}
    as_of = record.as_of if record else ""
    if record is None or not record.table_id or node.name not in observed.tables:
        return _cannot(node, versions, as_of, "it has not been built yet")
    config = current_config(node, observed)
    if frozen := find_frozen(node, record, config):
        return _cannot(node, versions, as_of, f"it is frozen: {frozen.reason}")
    stale = find_stale(node, record, config)
    from strandline.compute.recompute import compare_with_recompute
    from strandline.dispatch.workers import expect

    if as_of:
        desk = replace(desk, as_of=parse_instant(as_of))
    try:
        work, expected = expect(desk, node, record, WrittenConfig(hash=config.hash, parts=config.parts))
        comparison = compare_with_recompute(
            work,
            expected,
            stale=stale is not None and not node.traits.origins,
            sample_percent=sample_percent,
        )
        if stale is not None and node.traits.origins:
            # The columns that are as declared are compared. Those that are not are stale in every row.
            comparison = replace(comparison, stale=record.row_count)
    except StrandlineError as error:
        return _cannot(node, versions, as_of, str(error))
    except Exception as error:  # noqa: BLE001 - whatever Spark raises is this dataset's result; the others go on
        return _cannot(node, versions, as_of, f"the recompute failed: {' '.join(str(error).split())[:600]}")
    if counts_break := _broken_counts(node, record, comparison.compared):
        return VerifiedDataset(
            dataset=node.name,
            result="different",
            equal=False,
            compared_rows=comparison.compared,
            differing_rows=1,
            input_versions=versions,
            as_of=as_of,
            reason=counts_break,
        )
    result = (
        "different"
        if comparison.differing
        else "stale"
        if comparison.stale
        else "equal"
        if comparison.compared
        else "empty"
    )
    return VerifiedDataset(
        dataset=node.name,
        result=result,
        equal=not comparison.differing and not comparison.stale,
        compared_rows=comparison.compared,
        differing_rows=comparison.differing,
        stale_rows=comparison.stale,
        kept_rows=comparison.kept,
        input_versions=versions,
        as_of=as_of,
        examples=tuple({"only_in": e.only_in, "stale": e.stale, "row": e.row} for e in comparison.examples),
        reason=stale.reason if stale else "",
        failed_keys=expected.keys.get(KeyStatus.FAILED, 0) if expected.keys is not None else None,
        reprocessing_keys=expected.keys.get(KeyStatus.REPROCESSING, 0) if expected.keys is not None else None,
    )


def _open_desk(workspace: Workspace, observed: Observed, scratch: str) -> Desk:
    """A desk at which every table is as it was recorded.

    The nodes share nothing, and Spark reads every table: delta-rs may be what is wrong.
    """
    from strandline.lake.small import SmallTables
    from strandline.lake.work import Shared
    from strandline.spark.session import get_session

    at, settings = now(), workspace.project.settings
    small = SmallTables(lake=workspace.lake, folder=f"{scratch}/small", thresholds=_READ_BY_SPARK)
    desk = make_desk(
        workspace,
        observed,
        Plan(as_of=at, tasks=()),
        run_name(at),
        lambda: get_session(settings),
        RunRequest(),
    )
    return replace(
        desk, pins=Pins.recorded(observed.view.nodes), shared=Shared(small=small), scratch=f"{scratch}/small"
    )


_READ_BY_SPARK = Thresholds(small_table_bytes=-1, looked_up_table_bytes=-1)


def _broken_counts(node: Node, record: NodeRecord, compared: int) -> str:
    """L10: a source has as many rows as were received. The outcomes of facts add up to the number offered."""
    counts = record.counts
    if node.traits.receives and counts.get("received", compared) != compared:
        return f"the counts do not add up: {counts['received']} were received, and the table has {compared}"
    if not node.traits.counts_offers or not counts:
        return ""
    parts = sum(counts.get(n, 0) for n in ("accepted", "duplicates", "quarantined", "passed_over"))
    return "" if counts.get("offered", 0) == parts else f"the counts do not add up: {dict(counts)}"


def _cannot(node: Node, versions: Mapping[str, int], as_of: str, reason: str) -> VerifiedDataset:
    return VerifiedDataset(
        dataset=node.name,
        result="unverifiable",
        equal=False,
        input_versions=versions,
        as_of=as_of,
        reason=reason,
    )
