"""What the history of a timeline must contain, by brute force."""

from collections.abc import Mapping

from strandline.lake.log import LogEntry
from tests.faults.evidence import Evidence, require
from tests.faults.kinds.facts import facts_sent
from tests.faults.kinds.snapshot.oracle import latest
from tests.faults.plain_work import live
from tests.property.timeline_brute import fold_all
from tests.property.timeline_table import CURRENT, FAILED, Head, Table
from tests.property.timeline_world import Fact

from .data import FIELDS, HISTORY, TRADES, make_declaration
from .versions import Told, check_versions
from .worker import read_facts


def check(evidence: Evidence) -> None:
    """L2: all facts that the last commit read, folded; at rest, all that were sent."""
    table = check_versions(evidence, HISTORY, FIELDS, tell_watermark)
    if inputs := evidence.inputs(HISTORY):
        _check_folded(table, read_facts(live(inputs[TRADES.dataset])))
    if evidence.at_rest:
        _check_folded(table, facts_of_trades(evidence))


def facts_of_trades(evidence: Evidence) -> dict[str, Fact]:
    """Every trade that was sent, as it is now."""
    return read_facts(latest(facts_sent(evidence, TRADES), *TRADES.key).values())


def tell_watermark(head: Head, before: LogEntry, after: LogEntry) -> Told:
    return head.watermark, head.watermark


def _check_folded(table: Table, facts: Mapping[str, Fact]) -> None:
    folded = fold_all(make_declaration(scale=1), facts)
    missing = (folded.rows.keys() | folded.failed) - table.heads.keys()
    require(not missing, "L2 every key with facts has a head", missing)
    for key, head in table.heads.items():
        if key in folded.failed:
            require(head.status == FAILED, "L2 a key that does not fold says so", key, head)
            continue
        rows, expected = table.values_by_date(key), folded.rows.get(key, {})
        require(rows == expected, "L2 history", key, rows, expected)
        require(head.status == CURRENT, "L2 a key that folds is current", key, head)
        state = folded.states.get(key)
        require(head.state == state, "L2 the stored state is that of all facts", key, head, state)
        require(head.last_on == max(expected, default=None), "L2 the date of the state", key, head)
