"""An entity before its datasets are known, and its check against them."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from strandline.declare.loading import Loading
from strandline.declare.reading import find_dataset, find_known, is_understood
from strandline.declare.yaml_lines import DataPath
from strandline.model.columns import POSITION, ColumnType
from strandline.model.entity import Entity, Namer, Use, Variable
from strandline.model.errors import Place
from strandline.model.own_clock import Every
from strandline.model.report import Report
from strandline.sql.known_columns import Known

from .ids import settle_types
from .inputs import InputKind, find_kind, find_order
from .nodes import entity_node
from .owners import Owner, Owners
from .spec import EntitySpec, OwnerSpec, ViaDataset
from .variables import Variables
from .written import Written

FOLLOWING = ("entity-by", "window-type", "latest-without-order", "merge-refused", "unknown-column")
"""Mistakes that may only follow from a dataset that was not understood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityDraft:
    """An entity, which is built after everything that it reads."""

    name: str
    spec: EntitySpec
    path: DataPath
    place: Place
    output: str
    """Unique among the drafts. It is the name of the entity if no other thing has that name."""
    id: tuple[str, ...]
    types: Mapping[str, ColumnType]
    written: tuple[Written, ...]
    lacks_some: bool
    """A variable was left out because the length of its window is wrong."""
    meant: Mapping[str, str] = field(default_factory=dict)
    """By dataset as written: the dataset that is read."""

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.meant.get(name, name) for name, _, _ in self._named()))

    @property
    def guessed(self) -> Collection[str]:
        return [name for written, name in self.meant.items() if written != name]

    def settle(self, loading: Loading) -> "EntityDraft":
        meant: dict[str, str] = {}
        for name, what, path in self._named():
            if name not in meant:
                meant[name] = find_dataset(name, what, path, (self.name,), loading)
        return replace(self, meant=meant)

    def build(self, loading: Loading) -> None:
        report, mistakes = loading.report_of(*self.path), len(loading.report)
        owners = Owners(
            entity=self.name,
            id=self.id,
            path=self.path,
            by=self.spec.by,
            meant=self.meant,
            loading=loading,
        )
        variables = Variables(entity=self.name, loading=loading, id=self.id)
        for written in self.written:
            if not written.lacks_length:
                variables.claim(written, report)
        uses: dict[str, tuple[str, Owner, InputKind]] = {}
        for written in self.written:
            if written.expr is not None:
                variables.add_expr(written, report.without(("unknown-column",) if self.lacks_some else ()))
            else:
                self._add(written, owners, variables, uses, loading, report)
        variables.check_cycles(report)
        self._check_by(owners, loading, report)
        found = self._types_found(uses, loading)
        types = settle_types(self.name, self.id, self.types, found, self.path, loading.document, report)
        known = self._know(types, variables.made)
        loading.known[self.output] = known
        if len(loading.report) > mistakes or not all(is_understood(n, loading) for n in self.reads):
            loading.mark_broken(self.output)
        if loading.right:
            entity = self._make(types, variables.made, uses, loading)
            names = {loading.tables[name]: name for name in reversed(self.reads)}
            loading.nodes.append(entity_node(entity, names, loading.calendar, known.order))

    def _add(
        self,
        written: Written,
        owners: Owners,
        variables: Variables,
        uses: dict[str, tuple[str, Owner, InputKind]],
        loading: Loading,
        report: Report,
    ) -> None:
        dataset = self.meant.get(written.dataset, written.dataset)
        if not is_understood(dataset, loading) or dataset in self.guessed:
            report = report.without(FOLLOWING)
        owner = owners.find(written.dataset, written.by, written.by_path, report)
        kind = find_kind(dataset, loading)
        name = _name_use(dataset, owner) if owner else dataset
        variables.add(written, dataset, name, owner, kind, report)
        if owner is not None:
            uses[name] = (dataset, owner, kind)

    def _named(self) -> Iterator[tuple[str, str, DataPath]]:
        """Every dataset that is named, with what names it and where."""
        of_entity = f"the entity `{self.name}`"
        for written in self.written:
            if written.expr is None:
                yield (
                    written.dataset,
                    f"{written.owner_of(written.dataset_path)} of {of_entity}",
                    written.dataset_path,
                )
            yield from _named_in(written.by, f"`by` of {of_entity}", written.by_path)
        for dataset, owner in self.spec.by.items():
            yield dataset, f"`by` of {of_entity}", (*self.path, "by", dataset)
            yield from _named_in(owner, f"`by` of {of_entity}", (*self.path, "by", dataset))

    def _check_by(self, owners: Owners, loading: Loading, report: Report) -> None:
        for dataset in self.spec.by:
            known = self.meant.get(dataset, dataset)
            if dataset not in owners.used and known == dataset and is_understood(dataset, loading):
                what = f"`by` of the entity `{self.name}` names `{dataset}`, which no variable reads."
                place = loading.document.place(*self.path, "by", dataset)
                report.add("unused-input", what, f"Remove `{dataset}` from `by`.", place)

    def _types_found(
        self, uses: Mapping[str, tuple[str, Owner, InputKind]], loading: Loading
    ) -> dict[str, list[tuple[str, str]]]:
        """By id column: the datasets that have it, and its type there, where that is known."""
        found: dict[str, list[tuple[str, str]]] = {column: [] for column in self.id}
        for _, owner, _ in uses.values():
            known = find_known(owner.named_in, loading)
            for column, there in zip(self.id, owner.columns, strict=True):
                if (type_ := known.type_of(there)) is not None:
                    found[column].append((owner.named_in, type_))
        return found

    def _know(self, types: tuple[ColumnType | None, ...], variables: Collection[Variable]) -> Known:
        ids = zip(self.id, types, strict=True)
        columns: dict[str, str | None] = {column: type_.stored if type_ else None for column, type_ in ids}
        # In declared order, and also those that are wrong: naming one is not another mistake.
        columns |= dict.fromkeys(written.name for written in self.written)
        return Known(
            types=columns,
            complete=True,
            names=frozenset(columns),
            unique=(self.id,),
            row_key=self.id,
            always_named=True,
        )

    def _make(
        self,
        types: tuple[ColumnType | None, ...],
        variables: Collection[Variable],
        uses: Mapping[str, tuple[str, Owner, InputKind]],
        loading: Loading,
    ) -> Entity:
        namers: dict[str, Namer] = {}
        for _, owner, _ in uses.values():
            facts = find_kind(owner.named_in, loading).facts
            namer = Namer(
                dataset=facts or loading.tables[owner.named_in], columns=owner.columns, for_ever=bool(facts)
            )
            namers.setdefault(namer.name, namer)
        order = {written.name: place for place, written in enumerate(self.written)}
        return Entity(
            name=self.name,
            place=self.place,
            id=self.id,
            types=types,
            every=Every(self.spec.every) if self.spec.every else None,
            uses=tuple(
                Use(
                    name=name,
                    input=dataset,
                    dataset=loading.tables[dataset],
                    columns=owner.columns,
                    via=owner.steps(loading),
                    order_by=find_order(kind, loading),
                    ranked_by=_find_ranked_by(kind, find_order(kind, loading), name, variables),
                )
                for name, (dataset, owner, kind) in uses.items()
            ),
            namers=tuple(namers.values()),
            variables=tuple(sorted(variables, key=lambda v: order[v.name])),
        )


def _find_ranked_by(
    kind: InputKind, order_by: tuple[str, ...], use: str, variables: Collection[Variable]
) -> str:
    picks = any(v.use == use and v.reads_row for v in variables)
    return kind.facts if kind.is_record_set and picks and POSITION in order_by else ""


def _named_in(owner: OwnerSpec | None, what: str, path: DataPath) -> Iterator[tuple[str, str, DataPath]]:
    if isinstance(owner, ViaDataset):
        yield owner.via, what, (*path, "via")


def _name_use(dataset: str, owner: Owner) -> str:
    steps = "".join(f" via {name} on {on}" for name, on in owner.via)
    return f"{dataset}{steps} by {', '.join(owner.columns)}"
