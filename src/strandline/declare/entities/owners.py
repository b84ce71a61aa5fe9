"""Whose row is it: the columns of each dataset that contain the id of an entity, or lead to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from strandline.declare.loading import Loading
from strandline.declare.reading import check_column, find_known, is_understood
from strandline.declare.yaml_lines import DataPath
from strandline.model.entity import Step
from strandline.model.report import Report, listed, suggest
from strandline.model.typed_values import are_compared_exactly

from .spec import OwnerSpec, ViaDataset


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """How the rows of a dataset find their entities."""

    columns: tuple[str, ...]
    """In the order of the id: of the dataset, or of the last one on the way."""
    named_in: str
    """The dataset that has these columns, by its name in the project file."""
    via: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """(dataset, ((column here, column there), ...)) of each lookup."""

    def steps(self, loading: Loading) -> tuple[Step, ...]:
        return tuple(Step(dataset=loading.tables[name], on=on) for name, on in self.via)


@dataclass(slots=True, kw_only=True)
class Owners:
    """The owners of the rows of all datasets of one entity."""

    entity: str
    id: tuple[str, ...]
    path: DataPath
    by: Mapping[str, OwnerSpec]
    """By dataset as written: what is declared for it."""
    meant: Mapping[str, str]
    """By dataset as written: the dataset that is read."""
    loading: Loading
    used: set[str] = field(default_factory=set)
    """The datasets of `by` that some variable needs."""

    def find(self, name: str, spec: OwnerSpec | None, path: DataPath, report: Report) -> Owner | None:
        """The owner of a dataset's rows. None if it is wrong, which is then reported.

        `spec` is what a variable says for itself, at `path`.
        """
        return self._find(name, spec, path, report, ())

    def _find(
        self, name: str, spec: OwnerSpec | None, path: DataPath, report: Report, trail: tuple[str, ...]
    ) -> Owner | None:
        if spec is None:
            self.used.add(name)
            spec, path = self.by.get(name), (*self.path, "by", name)
        if isinstance(spec, ViaDataset):
            return self._find_via(name, spec, path, report, trail)
        dataset = self.meant.get(name, name)
        columns = self._columns(spec, path, report)
        if columns is None:
            return None
        known = find_known(dataset, self.loading)
        if spec is None:
            return self._take_own(name, dataset, columns, report)
        place, what = self.loading.document.place(*path), f"`by` of the entity `{self.entity}`"
        has = [check_column(column, what, dataset, known, place, report) for column in columns]
        return Owner(columns=columns, named_in=dataset) if all(has) else None

    def _take_own(self, name: str, dataset: str, columns: tuple[str, ...], report: Report) -> Owner | None:
        """Nothing is declared: the dataset must have columns with the names of the id."""
        known = find_known(dataset, self.loading)
        missing = [column for column in columns if not known.may_have(column)]
        if not missing:
            return Owner(columns=columns, named_in=dataset)
        what = (
            f"the entity `{self.entity}` reads `{dataset}`, which has no column {listed(missing)}: nothing"
            " says to which entity a row belongs."
        )
        column = "<column>" if len(self.id) == 1 else f"[{', '.join('<column>' for _ in self.id)}]"
        remedy = f"Add `by: {{{name}: {column}}}`. {suggest(missing[0], known.names or (), 'columns')}"
        report.add("entity-by", what, remedy, self.loading.document.place(*self.path))
        return None

    def _columns(
        self, spec: str | list[str] | dict[str, str] | None, path: DataPath, report: Report
    ) -> tuple[str, ...] | None:
        if spec is None:
            return self.id
        place, of_id = self.loading.document.place(*path), f"The id is {listed(self.id)}"
        what = f"`by` of the entity `{self.entity}`"
        if isinstance(spec, dict):
            by_id = {key.lower(): column.lower() for key, column in spec.items()}
            if strangers := [key for key in by_id if key not in self.id]:
                mistake = f"{what} names `{strangers[0]}`, which is not part of its id."
                report.add("entity-by", mistake, suggest(strangers[0], self.id, "id columns"), place)
                return None
            return tuple(by_id.get(column, column) for column in self.id)
        columns = tuple(column.lower() for column in ([spec] if isinstance(spec, str) else spec))
        if len(columns) == len(self.id):
            return columns
        has = "one column" if len(self.id) == 1 else f"{len(self.id)} columns"
        mistake = f"{what} names {listed(columns)}, and its id has {has}."
        remedy = f"{of_id}: write one column for each, in this order, or {{id: column}}."
        report.add("entity-by", mistake, remedy, place)
        return None

    def _find_via(
        self, name: str, spec: ViaDataset, path: DataPath, report: Report, trail: tuple[str, ...]
    ) -> Owner | None:
        loading, place = self.loading, self.loading.document.place(*path)
        if spec.via in (name, *trail):
            what = f"`by` of the entity `{self.entity}` finds the owners of `{spec.via}` through itself."
            report.add("cycle", what, f"Name the id's columns in `{spec.via}`.", place)
            return None
        here, there = (self.meant.get(dataset, dataset) for dataset in (name, spec.via))
        pairs = tuple((ours.lower(), theirs.lower()) for ours, theirs in _pairs(spec))
        known_here, known_there = find_known(here, loading), find_known(there, loading)
        what, sound = f"`on` of the entity `{self.entity}`", True
        for ours, theirs in pairs:
            sound &= check_column(ours, what, here, known_here, place, report)
            sound &= check_column(theirs, what, there, known_there, place, report)
            types = known_here.type_of(ours), known_there.type_of(theirs)
            if sound and types[0] and types[1] and not are_compared_exactly(types[0], types[1]):
                mistake = (
                    f"{what} compares `{ours}` of `{here}`, which is {types[0]}, with `{theirs}` of"
                    f" `{there}`, which is {types[1]}."
                )
                report.add("entity-by", mistake, "Give both one type where they are declared.", place)
                sound = False
        further = self._find(spec.via, None, path, report, (name, *trail))
        if further is None or not sound or not is_understood(there, loading):
            return None
        return Owner(columns=further.columns, named_in=further.named_in, via=((there, pairs), *further.via))


def _pairs(spec: ViaDataset) -> list[tuple[str, str]]:
    return list(spec.on.items()) if isinstance(spec.on, dict) else [(column, column) for column in spec.on]
