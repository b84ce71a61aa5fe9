"""The fold of a timeline: its own text is checked when it is loaded, then what it reads."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from strandline.declare.datasets.values import parse_type
from strandline.declare.loading import Loading
from strandline.declare.names import lowered
from strandline.declare.python_code.checks import FOLD
from strandline.declare.python_code.load import Wanted, load_python
from strandline.declare.reading import check_column, find_dataset, find_known, is_understood
from strandline.declare.yaml_lines import DataPath, Document
from strandline.model.columns import POSITION, TypeName
from strandline.model.errors import Place
from strandline.model.report import Report, find_nearest, listed
from strandline.model.timeline import Field, FoldCode, Timeline
from strandline.sql.known_columns import Known

from .datasets import FOLLOWING, check_date
from .nodes import know_columns, timeline_node
from .spec import TimelineSpec

_OTHER_TYPES = {
    TypeName.TIMESTAMP_MS: "timestamp",
    TypeName.TIMESTAMP_US: "timestamp",
    TypeName.TIMESTAMP_NS: "timestamp",
    TypeName.JSON: "string",
}
"""Types that say how a payload writes a value. A fold returns the value itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryDraft:
    """The fold of a timeline, which is built after its facts."""

    name: str
    spec: TimelineSpec
    path: DataPath
    place: Place
    output: str
    """Unique among the drafts. It is the name of the output if no other thing has that name."""
    fold: FoldCode | None
    fields: tuple[Field, ...]
    facts: str

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.facts,)

    @property
    def guessed(self) -> Collection[str]:
        return () if self.facts == self.spec.facts else (self.facts,)

    def settle(self, loading: Loading) -> "HistoryDraft":
        what = f"the timeline `{self.name}`"
        return replace(
            self,
            facts=find_dataset(self.spec.facts, what, (*self.path, "facts"), outputs_of(self.spec), loading),
        )

    def build(self, loading: Loading) -> None:
        known, mistakes = find_known(self.facts, loading), len(loading.report)
        understood = is_understood(self.facts, loading) and not self.guessed
        report = loading.report_of(*self.path)
        has_key = self._check_columns(loading, report if understood else report.without(FOLLOWING))
        if has_key:
            check_together(self.name, self.spec, self.path, loading.document, report)
        if not understood or len(loading.report) > mistakes:
            loading.mark_broken(self.output)
        key = tuple(_mend(column, known) for column in lowered(self.spec.key))
        columns = know_columns(
            {column: known.type_of(column) for column in key}, find_field_types(self.spec, self.fields)
        )
        loading.known[self.output] = columns
        if loading.right:
            assert self.fold is not None
            timeline = Timeline(
                name=self.name,
                place=self.place,
                output=self.output,
                key=key,
                facts=loading.tables[self.facts],
                date=self.spec.date.lower(),
                order_by=lowered(self.spec.order_by),
                fold=self.fold,
                fields=self.fields,
                together=lowered(self.spec.together),
            )
            last = outputs_of(self.spec)[-1]
            loading.nodes.append(timeline_node(timeline, self.facts, columns.order, last))

    def _check_columns(self, loading: Loading, report: Report) -> bool:
        """Report columns that the facts do not have. False if the key names one."""
        known, document = find_known(self.facts, loading), loading.document
        has_key = True
        for word, names in (("key", self.spec.key), ("order_by", self.spec.order_by)):
            place, what = document.place(*self.path, word), f"`{word}` of the timeline `{self.name}`"
            for column in lowered(names):
                # Facts that were decoded from a source have a position in it. What is computed has none.
                has_position = word == "order_by" and self.facts not in loading.drafts
                if column != POSITION or not has_position:
                    has = check_column(column, what, self.facts, known, place, report)
                    has_key &= has or word != "key"
        if not self.spec.date:
            return has_key  # it is missing, which has already been reported
        check_date(
            self.spec.date.lower(),
            f"`date` of the timeline `{self.name}`",
            self.facts,
            known,
            document.place(*self.path, "date"),
            report,
            is_computed=self.facts in loading.drafts,
        )
        return has_key


def _mend(column: str, known: Known) -> str:
    """The column, or the nearest one instead of one that does not exist and was reported."""
    return column if known.may_have(column) else find_nearest(column, known.names or ()) or column


def outputs_of(spec: TimelineSpec) -> tuple[str, ...]:
    return (spec.output_dataset, *((spec.valuation.output_dataset,) if spec.valuation else ()))


def load_fold(
    name: str, spec: TimelineSpec, path: DataPath, folder: Path, document: Document, report: Report
) -> FoldCode | None:
    if not spec.fold:
        return None  # it is missing, which has already been reported
    wanted = Wanted(word="fold", example="folds.py", name=name, calling=FOLD)
    code = load_python(spec.fold, wanted, document.place(*path, "fold"), folder, report)
    if code is None:
        return None
    return FoldCode(file=code.file, function=code.function, code=code.text, modules=code.modules)


def find_field_types(spec: TimelineSpec, fields: tuple[Field, ...]) -> dict[str, str | None]:
    """By field: the type it is stored as. None if the declared type is wrong, which was reported."""
    return {**dict.fromkeys(lowered(spec.fields)), **{field.name: field.type.stored for field in fields}}


def make_fields(
    name: str, spec: TimelineSpec, path: DataPath, document: Document, report: Report
) -> tuple[Field, ...]:
    fields = []
    for word, text in spec.fields.items():
        place = document.place(*path, "fields", word)
        type_ = parse_type(text, place, report)
        if type_ is not None and type_.name in _OTHER_TYPES:
            what = (
                f"the field `{word}` of the timeline `{name}` is `{type_}`, which says how a payload writes"
                " a value. The fold returns the value itself."
            )
            report.add("field-type", what, f"Write `{_OTHER_TYPES[type_.name]}`.", place)
        elif type_ is not None:
            fields.append(Field(name=word.lower(), type=type_))
    return tuple(fields)


def check_together(name: str, spec: TimelineSpec, path: DataPath, document: Document, report: Report) -> None:
    key = lowered(spec.key)
    if outside := [column for column in lowered(spec.together) if column not in key]:
        what = f"`together` of the timeline `{name}` names {listed(outside)}, which the key does not contain."
        remedy = f"Name columns of the key: {listed(key)}."
        report.add("together-not-in-key", what, remedy, document.place(*path, "together"))
