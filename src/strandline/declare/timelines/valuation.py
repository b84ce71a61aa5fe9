"""The valuation of a timeline: what it reads, the business dates, and its expressions."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from strandline.declare.loading import Loading
from strandline.declare.reading import find_dataset, find_known, is_understood
from strandline.declare.yaml_lines import DataPath, Document
from strandline.model.errors import Place
from strandline.model.report import Report
from strandline.model.timeline import DATE, BusinessDates, Reference, Timeline, Valuation, ValuedColumn

from .datasets import FOLLOWING, check_date
from .expressions import check_where, make_columns
from .nodes import know_columns, valuation_node
from .references import References
from .spec import CalendarSpec, ValuationSpec

_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuationDraft:
    """The valuation of a timeline, which is built after the history and everything that is looked up."""

    timeline: str
    field_types: Mapping[str, str | None]
    spec: ValuationSpec
    path: DataPath
    place: Place
    history: str
    output: str
    """Unique among the drafts. It is the name of the output if no other thing has that name."""
    due_at: timedelta
    meant: Mapping[str, str] = field(default_factory=dict)
    """By name of a dataset as written: the dataset that is read."""

    @property
    def reads(self) -> tuple[str, ...]:
        names = (self.meant.get(name, name) for name in self._written())
        return (self.history, *dict.fromkeys(names))

    @property
    def guessed(self) -> Collection[str]:
        return [name for written, name in self.meant.items() if written != name]

    def settle(self, loading: Loading) -> "ValuationDraft":
        own = (self.history, self.output)
        meant = {}
        if isinstance(self.spec.calendar, CalendarSpec):
            name, what = self.spec.calendar.dataset, f"the calendar of the timeline `{self.timeline}`"
            meant[name] = find_dataset(name, what, (*self.path, "calendar", "dataset"), own, loading)
        for word, reference in self.spec.references.items():
            what = f"the reference `{word}` of the timeline `{self.timeline}`"
            path = (*self.path, "references", word, "dataset")
            meant[reference.dataset] = find_dataset(reference.dataset, what, path, own, loading)
        return replace(self, meant=meant)

    def build(self, loading: Loading) -> None:
        report, mistakes = loading.report_of(*self.path[:2]), len(loading.report)
        calendar = self._make_calendar(loading, report)
        history = find_known(self.history, loading)
        key = history.unique[0][:-1]
        references = References(
            timeline=self.timeline,
            path=self.path,
            types={**{column: history.type_of(column) for column in key}, **self.field_types},
            specs=self.spec.references,
            datasets={w.lower(): self.meant[r.dataset] for w, r in self.spec.references.items()},
            loading=loading,
        )
        resolved = references.resolve(report)
        visible = (*key, DATE, *self.field_types)
        columns = make_columns(self.spec.columns, visible, references, report)
        if self.spec.where is not None:
            check_where(self.spec.where, (*visible, *(c.name for c in columns)), references, report)
        if len(loading.report) > mistakes or not all(is_understood(name, loading) for name in self.reads):
            loading.mark_broken(self.output)
        known = know_columns(
            {column: history.type_of(column) for column in key}, self.field_types, [c.name for c in columns]
        )
        loading.known[self.output] = known
        if loading.right:
            used = tuple(replace(r, columns=tuple(references.used[r.name])) for r in resolved)
            valuation = self._make(calendar, used, columns, loading)
            names = {loading.tables[name]: name for name in reversed(self.reads)}
            loading.nodes.append(valuation_node(valuation, names, loading.calendar, known.order))

    def _make(
        self,
        calendar: BusinessDates,
        references: tuple[Reference, ...],
        columns: tuple[ValuedColumn, ...],
        loading: Loading,
    ) -> Valuation:
        timeline = next(node.definition for node in loading.nodes if node.name == self.history)
        assert isinstance(timeline, Timeline)
        return Valuation(
            timeline=timeline,
            place=self.place,
            output=self.output,
            calendar=calendar,
            references=references,
            columns=columns,
            where=self.spec.where or "",
        )

    def _make_calendar(self, loading: Loading, report: Report) -> BusinessDates:
        if not isinstance(self.spec.calendar, CalendarSpec):
            return BusinessDates(due_at=self.due_at, timezone=loading.calendar.timezone)
        dataset, column = self.meant[self.spec.calendar.dataset], self.spec.calendar.date.lower()
        if not is_understood(dataset, loading) or dataset in self.guessed:
            report = report.without(FOLLOWING)
        check_date(
            column,
            f"`calendar` of the timeline `{self.timeline}`",
            dataset,
            find_known(dataset, loading),
            loading.document.place(*self.path, "calendar", "date"),
            report,
            is_computed=dataset in loading.drafts,
        )
        return BusinessDates(
            dataset=loading.tables.get(dataset, dataset),
            column=column,
            due_at=self.due_at,
            timezone=loading.calendar.timezone,
        )

    def _written(self) -> tuple[str, ...]:
        calendar = self.spec.calendar
        names = (reference.dataset for reference in self.spec.references.values())
        return (*((calendar.dataset,) if isinstance(calendar, CalendarSpec) else ()), *names)


def make_due_at(
    name: str, spec: ValuationSpec, path: DataPath, document: Document, report: Report
) -> timedelta:
    if spec.due_at is None:
        return timedelta()
    if time := _TIME.fullmatch(spec.due_at):
        return timedelta(hours=int(time[1]), minutes=int(time[2]))
    what = f"`due_at` of the timeline `{name}` is `{spec.due_at}`, not a time of a day."
    report.add("due-at", what, 'Write it as HH:MM, such as "18:00".', document.place(*path, "due_at"))
    return timedelta()
