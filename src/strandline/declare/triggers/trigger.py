"""A trigger, which is built after the change log that it reads."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from strandline.declare.conditions import make_condition
from strandline.declare.loading import Loading
from strandline.declare.row_keys import check_row_key
from strandline.declare.yaml_lines import DataPath
from strandline.model.condition_json import condition_to_json
from strandline.model.errors import Place
from strandline.model.hashing import make_config
from strandline.model.node import By, Input, Node, NodeConfig
from strandline.model.publishing import CHANGES_SUFFIX, Existing, Trigger
from strandline.model.report import find_nearest, suggest
from strandline.model.traits import Traits, Writing
from strandline.sql.known_columns import NOTHING

from .spec import TriggerSpec

COLUMNS = {
    "event_id": "string",
    "event_type": "string",
    "key": "string",
    "source_timestamp": "bigint",
    "n": "bigint",
    "data": "string",
    "version": "bigint",
    "position": "bigint",
    "revision": "bigint",
    "quiet": "boolean",
    "recorded_at": "timestamp",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerDraft:
    name: str
    spec: TriggerSpec
    path: DataPath
    place: Place
    dataset: str
    endpoints: tuple[str, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.dataset, f"{self.dataset}{CHANGES_SUFFIX}")

    @property
    def guessed(self) -> Collection[str]:
        return () if self.dataset == self.spec.from_ else self.reads

    def settle(self, loading: Loading) -> "TriggerDraft":
        name = self.spec.from_
        if not name or name in loading.tables or name in loading.registry.broken:
            return self
        others = [
            table
            for table in loading.tables
            if not table.endswith(CHANGES_SUFFIX) and not isinstance(loading.drafts.get(table), TriggerDraft)
        ]
        what = f"the trigger `{self.name}` reads `{name}`, which is not a dataset."
        place = loading.document.place(*self.path, "from")
        loading.report.add("unknown-dataset", what, suggest(name, others, "datasets"), place)
        return replace(self, dataset=find_nearest(name, others) or name)

    def build(self, loading: Loading) -> None:
        known, document = loading.known.get(self.dataset, NOTHING), loading.document
        understood = self.dataset in loading.known and self.dataset not in loading.registry.broken
        report = loading.report_of(*self.path)
        if understood and not self.guessed:
            place = document.place(*self.path, "from")
            check_row_key(self.dataset, known, f"the trigger `{self.name}`", place, report)
        else:
            report = report.without(("unknown-column",))
        what = f"of the trigger `{self.name}`"
        fire_path, clear_path = (*self.path, "fire"), (*self.path, "clear")
        fire = make_condition(self.spec.fire, f"`fire` {what}", fire_path, known, document, report)
        clear = (
            make_condition(self.spec.clear, f"`clear` {what}", clear_path, known, document, report)
            if self.spec.clear is not None
            else None
        )
        if loading.right:
            trigger = Trigger(
                name=self.name,
                place=self.place,
                dataset=loading.tables[self.dataset],
                key=known.row_key,
                fire=fire,
                clear=clear,
                endpoints=self.endpoints,
                existing=Existing(self.spec.existing),
                max_events=self.spec.guard.max_events,
            )
            loading.nodes.append(_node(trigger, f"{self.dataset}{CHANGES_SUFFIX}"))


def _node(trigger: Trigger, log: str) -> Node:
    config = _config(trigger)
    told = ", ".join(f"`{name}`" for name in trigger.endpoints) or "nobody"
    return Node(
        name=trigger.name,
        inputs=(Input(name=log, dataset=log, relation=By(columns=("key",))),),
        definition=trigger,
        config=config,
        traits=Traits(
            how=f"The changes of `{log}` are folded for each key. Events are appended; {told} is told.",
            drawn_under="triggers",
            drawn_from=5,
            writing=Writing.APPENDS,
            answers_invalidations=False,
            runs_code=False,
            quiet_parts=tuple(config.parts),
            publishes=trigger.dataset,
            follows_declaration=True,
            told_to=trigger.endpoints,
        ),
        columns=tuple(COLUMNS),
    )


def _config(trigger: Trigger) -> NodeConfig:
    """What its events depend on. Another endpoint, guard or treatment of existing rows changes no event."""
    parts: dict[str, object] = {
        "from": trigger.dataset,
        "fire": condition_to_json(trigger.fire),
        "clear": condition_to_json(trigger.clear) if trigger.clear is not None else None,
    }
    return make_config(parts, frozenset())
