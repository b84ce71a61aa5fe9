"""The change log of a dataset: one for each dataset that is published, viewed or watched by a trigger."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from strandline.declare.loading import Loading
from strandline.declare.row_keys import check_row_key
from strandline.declare.yaml_lines import DataPath
from strandline.model.columns import TimeUnit
from strandline.model.errors import Place
from strandline.model.hashing import make_config
from strandline.model.node import By, Input, Node
from strandline.model.publishing import CHANGES_SUFFIX, ChangeLog
from strandline.model.report import find_nearest, suggest
from strandline.model.traits import Traits, Writing
from strandline.sql.known_columns import NOTHING, Known

COLUMNS = {
    "version": "bigint",
    "position": "bigint",
    "operation": "string",
    "key": "string",
    "source_timestamp": "bigint",
    "fields": None,
    "data": "string",
    "before": "string",
    "published_at": "timestamp",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDraft:
    """A change log, which is built after its dataset."""

    dataset: str
    path: DataPath
    place: Place
    asked_for: bool
    """An entry of the section asks for it. Otherwise a view or a trigger does, and reports what is wrong."""
    guessed: Collection[str] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.dataset,)

    def settle(self, loading: Loading) -> "LogDraft":
        if self.dataset in loading.tables or self.dataset in loading.registry.broken:
            return self
        others = [name for name in loading.tables if not name.endswith(CHANGES_SUFFIX)]
        if self.asked_for:
            what = f"`publish` names `{self.dataset}`, which is not a dataset."
            remedy = suggest(self.dataset, others, "datasets")
            loading.report.add("unknown-dataset", what, remedy, self.place)
        nearest = find_nearest(self.dataset, others)
        return replace(self, dataset=nearest, guessed=(nearest,)) if nearest else self

    def build(self, loading: Loading) -> None:
        known = loading.known.get(self.dataset, NOTHING)
        understood = self.dataset in loading.known and self.dataset not in loading.registry.broken
        if understood and self.asked_for and not self.guessed:
            check_row_key(self.dataset, known, "a change log", self.place, loading.report)
        if loading.right:
            name = f"{self.dataset}{CHANGES_SUFFIX}"
            table = loading.tables[self.dataset]
            log = ChangeLog(dataset=table, key=known.row_key)
            loading.nodes.append(_node(name, self.dataset, log, loading.get_time_unit(self.dataset)))


def want_log(dataset: str, path: DataPath, loading: Loading, *, asked_for: bool = False) -> str:
    """The name of the dataset's change log, which is declared if it is not yet."""
    name = f"{dataset}{CHANGES_SUFFIX}"
    if name not in loading.drafts or asked_for:
        loading.drafts[name] = LogDraft(
            dataset=dataset, path=path, place=loading.document.place(*path), asked_for=asked_for
        )
        loading.add_table(name, name, Known(types=COLUMNS, complete=True, names=frozenset(COLUMNS)))
        loading.names[name] = (name,)
    return name


def _node(name: str, dataset: str, log: ChangeLog, time_unit: TimeUnit) -> Node:
    parts: dict[str, object] = {"dataset": log.dataset, "key": log.key}
    return Node(
        name=name,
        inputs=(Input(name=dataset, dataset=log.dataset, relation=By(columns=log.key)),),
        definition=log,
        config=make_config(parts, frozenset()),
        traits=Traits(
            how=f"The net changes of `{dataset}` are appended, commit by commit.",
            drawn_under="change logs",
            drawn_from=4,
            writing=Writing.APPENDS,
            answers_invalidations=False,
            runs_code=False,
            quiet_parts=tuple(parts),
            publishes=log.dataset,
            follows_declaration=True,
            time_unit=time_unit,
        ),
        columns=tuple(COLUMNS),
    )
