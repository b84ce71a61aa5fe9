"""The references of a valuation, each with the values by which it is looked up."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from strandline.declare.loading import Loading
from strandline.declare.reading import check_column, find_known, is_understood
from strandline.declare.yaml_lines import DataPath
from strandline.model.columns import METADATA_COLUMNS, POSITION
from strandline.model.errors import Place
from strandline.model.report import Report, listed, suggest
from strandline.model.timeline import Match, Reference
from strandline.model.typed_values import are_compared_exactly
from strandline.sql.known_columns import Known

from .datasets import FOLLOWING, check_date
from .spec import ReferenceSpec


@dataclass(slots=True, kw_only=True)
class References:
    """The references of one valuation as far as they have been resolved, and their columns in use."""

    timeline: str
    path: DataPath
    types: Mapping[str, str | None]
    """By column of the key and by field: the type it is stored as, where it is known."""
    specs: Mapping[str, ReferenceSpec]
    """By name as written, in the declared order. All other names here are in lower case."""
    datasets: Mapping[str, str]
    """By name: the dataset that is read."""
    loading: Loading
    known: dict[str, Known] = field(default_factory=dict)
    """By name of a resolved reference: the columns of its dataset."""
    used: dict[str, dict[str, None]] = field(default_factory=dict)
    """By name of a reference: its columns that are in use."""

    def resolve(self, report: Report) -> list[Reference]:
        return [self._resolve(name.lower(), spec, report) for name, spec in self.specs.items()]

    def use(self, reference: str, column: str, what: str, place: Place, report: Report) -> None:
        """Note that a column is in use. `what` says what names it."""
        dataset = self.datasets[reference]
        known = self.known[reference]
        if column in METADATA_COLUMNS:
            mistake = f"{what} names the metadata column `{reference}.{column}`."
            report.add("metadata-column", mistake, f"Name another column of `{dataset}`.", place)
        elif not known.may_have(column):
            mistake = f"{what} names `{reference}.{column}`, which is not a column of `{dataset}`."
            report.add("unknown-column", mistake, suggest(column, known.names or (), "columns"), place)
        else:
            self.used[reference][column] = None

    def _resolve(self, name: str, spec: ReferenceSpec, report: Report) -> Reference:
        dataset = self.datasets[name]
        if not is_understood(dataset, self.loading) or dataset != spec.dataset:
            report = report.without(FOLLOWING)
        known, place = find_known(dataset, self.loading), self._place(name, "on")
        what = f"`on` of the reference `{name}`"
        matches, sound = [], True
        for theirs, ours in _pairs(spec):
            has_column = check_column(theirs, what, dataset, known, place, report)
            sound &= has_column
            # A list names the columns of both sides at once: it is one mistake.
            of_ours = report if has_column or theirs != ours else report.without(("reference-on",))
            matches.append(self._match(name, theirs, ours, of_ours))
            self._check_types(name, dataset, matches[-1], known.type_of(theirs), report)
        if len({match.theirs for match in matches}) < len(matches):
            report.add("named-twice", f"{what} names a column twice.", "Keep one of them.", place)
        if spec.date is not None:
            what, place = f"`date` of the reference `{name}`", self._place(name, "date")
            is_computed = dataset in self.loading.drafts
            column = spec.date.lower()
            sound &= check_date(column, what, dataset, known, place, report, is_computed=is_computed)
        date = spec.date.lower() if spec.date is not None else ""
        if sound:
            self._check_unique(name, dataset, matches, date, report)
        self.known[name] = known
        self.used[name] = {}
        tables = self.loading.tables
        return Reference(
            name=name,
            dataset=tables.get(dataset, dataset),
            on=tuple(matches),
            date=date,
            required=spec.required,
        )

    def _match(self, name: str, theirs: str, ours: str, report: Report) -> Match:
        """What a column must be equal to: a column of the key, a field, or `reference.column`."""
        place = self._place(name, "on")
        above, dot, column = ours.partition(".")
        if dot and above in self.known:
            self.use(above, column, f"`on` of the reference `{name}`", place, report)
            return Match(theirs=theirs, reference=above, ours=column)
        if ours not in self.types:
            what = (
                f"`on` of the reference `{name}` names `{ours}`, which is not a column of the key, a field or"
                " a column of a reference above."
            )
            report.add("reference-on", what, self._suggest(name, above, ours), place)
        return Match(theirs=theirs, ours=ours)

    def _check_types(self, name: str, dataset: str, match: Match, theirs: str | None, report: Report) -> None:
        """Two types may look alike and be compared inexactly: `'01'` and `'1'` are both the number 1."""
        above = self.known.get(match.reference)
        ours = above.type_of(match.ours) if above else self.types.get(match.ours)
        if theirs is None or ours is None or are_compared_exactly(theirs, ours):
            return
        what = (
            f"`on` of the reference `{name}` compares `{match.theirs}` of `{dataset}`, which is {theirs},"
            f" with `{match}`, which is {ours}."
        )
        if dataset in self.loading.drafts:
            remedy = f"Let the query that makes `{dataset}` return `cast({match.theirs} as {ours})`."
        else:
            remedy = (
                f"Give both one type: `{match.theirs}: {{type: {ours}}}` under `columns:` of `{dataset}`,"
                " beside its `path` if it has one."
            )
        report.add("reference-type", what, remedy, self._place(name, "on"))

    def _suggest(self, name: str, above: str, ours: str) -> str:
        if above in map(str.lower, self.specs) and above != name and "." in ours:
            return f"Move `{above}` above `{name}`: references are resolved top down."
        columns = (f"{ref}.{c}" for ref, known in self.known.items() for c in sorted(known.names or ()))
        return suggest(ours, (*self.types, *columns), "names")

    def _check_unique(self, name: str, dataset: str, matches: list[Match], date: str, report: Report) -> None:
        """A reference must have one row for each value of `on` and each date."""
        columns = tuple(dict.fromkeys((*(match.theirs for match in matches), *((date,) if date else ()))))
        unique = find_known(dataset, self.loading).unique
        if any(set(columns) >= set(key) for key in unique):
            return
        what = (
            f"the reference `{name}` of the timeline `{self.timeline}` may have several rows:"
            f" nothing proves that `{dataset}` has one row for each {listed(columns)}."
        )
        keys = [key for key in unique if POSITION not in key]
        if keys:
            remedy = (
                f"Match it on its whole key: {listed(keys[0])}. A date column of the key is named by `date`."
            )
        elif dataset in self.loading.drafts:
            key = f"{dataset}: {{key: [{', '.join(columns)}]}}"
            remedy = f"Declare the key of its rows under `datasets:`: `{key}`."
        else:
            remedy = (
                f"Look up a record set: `record_set: {{key: [{', '.join(columns)}], order_by: [<column>]}}`."
            )
        report.add("reference-not-unique", what, remedy, self._place(name, "on"))

    def _place(self, name: str, word: str) -> Place:
        written = next(key for key in self.specs if key.lower() == name)
        return self.loading.document.place(*self.path, "references", written, word)


def _pairs(spec: ReferenceSpec) -> Iterator[tuple[str, str]]:
    pairs = spec.on.items() if isinstance(spec.on, dict) else zip(spec.on, spec.on, strict=True)
    return ((theirs.lower(), ours.lower()) for theirs, ours in pairs)
