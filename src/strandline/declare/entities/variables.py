"""The variables of an entity, checked against the datasets that they read."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from strandline.declare.datasets.values import fit_default
from strandline.declare.loading import Loading
from strandline.declare.names import check_column_name
from strandline.declare.reading import check_column, find_known
from strandline.declare.yaml_lines import DataPath
from strandline.model.accumulation import Accumulation
from strandline.model.entity import Border, Variable, Window, window_borders
from strandline.model.errors import Place
from strandline.model.node import EVERY_COLUMN
from strandline.model.report import Report, suggest
from strandline.sql.additive import find_addends
from strandline.sql.known_columns import Known
from strandline.sql.parse import PlaceOfLine
from strandline.sql.select_types import find_select_type
from strandline.sql.variables import Read, find_merge, read_expr, read_select, read_where

from .inputs import InputKind
from .owners import Owner
from .written import Text, Written

_Reading = Callable[[str, str, PlaceOfLine, Report], Read | None]
_MERGE = re.compile(r"\s*(sum|min|max|count|avg)\b.*", re.IGNORECASE | re.DOTALL)
_TIMES = ("timestamp", "date", "timestamp_ntz")


@dataclass(slots=True, kw_only=True)
class Variables:
    """The variables of one entity, as far as they have been checked."""

    entity: str
    loading: Loading
    id: tuple[str, ...]
    made: list[Variable] = field(default_factory=list)
    names: dict[str, Place] = field(default_factory=dict)
    read: dict[DataPath, Read | None] = field(default_factory=dict)
    """By place of a text: what it reads. None if it is wrong, which was reported."""

    def claim(self, written: Written, report: Report) -> None:
        """Register a name. Two variables of one name are a mistake, also if one is part of a family."""
        place = self.loading.document.place(*written.path)
        if not check_column_name(written.name, place, report):
            return
        if written.name in self.id:
            what = f"the variable `{written.name}` of the entity `{self.entity}` has the name of its id."
            report.add("named-twice", what, "Give it another name.", place)
        elif written.name in self.names:
            what = (
                f"the entity `{self.entity}` has two variables `{written.name}`; the other is at"
                f" {self.names[written.name]}."
            )
            report.add("named-twice", what, "Rename one of them: each is a column.", place)
        self.names.setdefault(written.name, place)

    def add_expr(self, written: Written, report: Report) -> None:
        assert written.expr is not None
        what = f"`expr` of the variable `{written.name}`"
        read = read_expr(written.expr.text, what, self._lines(written.expr), report)
        if read is None:
            return
        for name in read.names:
            if name.first not in self.names:
                mistake = f"{what} names `{name}`, which is not a variable of the entity `{self.entity}`."
                remedy = suggest(name.first, self.names, "variables")
                report.add("unknown-column", mistake, remedy, self._lines(written.expr)(name.line))
        self.made.append(
            Variable(
                name=written.name,
                place=self.loading.document.place(*written.path),
                expr=written.expr.text,
                needs=tuple(dict.fromkeys(name.first for name in read.names)),
                default=written.default,
            )
        )

    def add(
        self, written: Written, dataset: str, use: str, owner: Owner | None, kind: InputKind, report: Report
    ) -> None:
        """Check a variable over a dataset. `owner` is None if it was reported."""
        assert written.select is not None
        known, what = (
            find_known(dataset, self.loading),
            f"`select` of {written.owner_of(written.select.path)}",
        )
        select = self._read(written.select, what, read_select, report)
        reads = [(written.select, select, what)]
        for where in written.where:
            what = f"`where` of {written.owner_of(where.path)}"
            reads.append((where, self._read(where, what, read_where, report), what))
        columns: dict[str, None] = {}
        for text, read, what in reads:
            if read is not None:
                columns |= self._check_names(text, read, what, dataset, known, report)
        window = self._make_window(written, dataset, known, report)
        if select is not None:
            self._check_kind(written, select, dataset, kind, report)
            self._check_default(written, select, known, report)
        if select is None or owner is None or any(read is None for _, read, _ in reads):
            return
        borders: dict[Border, None] = dict.fromkeys(b for _, read, _ in reads if read for b in read.borders)
        borders |= dict.fromkeys(window_borders(window) if window else ())
        self.made.append(
            Variable(
                name=written.name,
                place=self.loading.document.place(*written.path),
                use=use,
                select=written.select.text,
                where=" AND ".join(f"({where.text}\n)" for where in written.where),
                window=window,
                default=written.default,
                borders=tuple(borders),
                moves_everybody=any(read.moves_everybody for _, read, _ in reads if read),
                reads=tuple(dict.fromkeys((*columns, *((window.column,) if window else ())))),
                reads_row=select.picks_rows,
                accumulation=self._accumulation(written, reads, owner, kind, columns, known),
            )
        )

    def _read(self, text: Text, what: str, read: _Reading, report: Report) -> Read | None:
        """Each text once: the variables of a family share theirs, and those of a group its `where`."""
        if text.path not in self.read:
            self.read[text.path] = read(text.text, what, self._lines(text), report)
        return self.read[text.path]

    def _accumulation(
        self,
        written: Written,
        reads: Sequence[tuple[Text, Read | None, str]],
        owner: Owner,
        kind: InputKind,
        columns: Collection[str],
        known: Known,
    ) -> Accumulation:
        """What decides whether a variable over a dataset can be added to."""
        found = [read for _, read, _ in reads if read is not None]
        cut = found[0].cut
        assert cut is not None
        moves = written.window is not None or any(read.borders for read in found)
        addends, refused = find_addends(cut, only_grows=kind.is_stream and not moves and not owner.via)
        if any(read.moves_everybody for read in found):
            refused = "`:as_of` is not only compared with bare columns"
        return Accumulation(
            addends=addends,
            refused=refused,
            is_alone=cut.only is not None,
            has_default=written.default is not None,
            columns=tuple((name, stored) for name in columns if (stored := known.type_of(name)) is not None),
            found_in=tuple(self.loading.tables.get(dataset, dataset) for dataset, _ in owner.via),
        )

    def _check_default(self, written: Written, select: Read, known: Known, report: Report) -> None:
        """A default must be a value of the variable, where its type is known without Spark."""
        assert select.cut is not None
        type_ = find_select_type(select.cut, known.type_of)
        if written.default is not None and type_ is not None:
            fit_default(written.default, type_, self.loading.document.place(*written.default_path), report)

    def _check_names(
        self, text: Text, read: Read, what: str, dataset: str, known: Known, report: Report
    ) -> dict[str, None]:
        place_of = self._lines(text)
        for name in read.names:
            check_column(name.first, what, dataset, known, place_of(name.line), report)
        return dict.fromkeys(name.first for name in read.names)

    def _make_window(self, written: Written, dataset: str, known: Known, report: Report) -> Window | None:
        if written.window is None:
            return None
        column, place = (
            written.window.column.lower(),
            self.loading.document.place(*written.window_path, "column"),
        )
        what = f"the window of {written.owner_of(written.window_path)}"
        if check_column(column, what, dataset, known, place, report):
            stored = known.type_of(column)
            if stored is not None and stored not in _TIMES:
                mistake = f"{what} is over `{column}` of `{dataset}`, which is {stored}, not a time."
                remedy = "Name a timestamp or date column, or give this one such a type where it is declared."
                report.add("window-type", mistake, remedy, place)
        if written.length is None:
            return None
        return Window(column=column, seconds=written.length.seconds, text=written.length.text)

    def _check_kind(
        self, written: Written, select: Read, dataset: str, kind: InputKind, report: Report
    ) -> None:
        """Check what only some kinds of dataset allow: `latest` needs an order, `merge` a stream."""
        assert select.cut is not None
        assert written.select is not None
        place = self.loading.document.place(*written.select.path)
        if select.needs_order and not kind.facts:
            mistake = (
                f"`select` of the variable `{written.title}` takes the latest row of `{dataset}`, whose rows"
                " have no order: it is computed."
            )
            remedy = "Name the order: `max_by(<column>, <order>)` or `min_by(<column>, <order>)`."
            report.add("latest-without-order", mistake, remedy, place)
        if written.merge is None:
            return
        needed, merge = find_merge(select.cut), _MERGE.fullmatch(written.merge)
        place = self.loading.document.place(*written.path)
        remedy = "Remove `merge`: Strandline finds out how a change reaches the variable."
        if not kind.is_stream:
            mistake = (
                f"the variable `{written.title}` has `merge`, and rows of `{dataset}` are updated: a record"
                " would count again with each update."
            )
            report.add("merge-refused", mistake, remedy, place)
        elif needed is None or merge is None or merge[1].lower() != needed:
            mistake = (
                f"the variable `{written.title}` has `merge: {written.merge}`, which is not right for it."
            )
            report.add("merge-refused", mistake, f"Write `merge: {needed}`." if needed else remedy, place)

    def check_cycles(self, report: Report) -> None:
        """Report expressions that depend on themselves."""
        needs = {v.name: v.needs for v in self.made if v.expr}
        done: set[str] = set()
        for start in needs:
            trail = [start]
            while trail and trail[-1] not in done:
                further = next((n for n in needs.get(trail[-1], ()) if n in needs and n not in done), None)
                if further is None:
                    done.add(trail.pop())
                elif further in trail:
                    cycle = " needs ".join(f"`{n}`" for n in (*trail[trail.index(further) :], further))
                    what = f"variables of the entity `{self.entity}` depend on each other: {cycle}."
                    place = next(v.place for v in self.made if v.name == further)
                    report.add("cycle", what, "Write one of them without the other.", place)
                    done |= set(trail)
                else:
                    trail.append(further)

    def _lines(self, text: Text) -> PlaceOfLine:
        return lambda line: self.loading.document.place_in_text(text.path, line)


def columns_of_row(variable: Variable) -> frozenset[str]:
    """The columns of a dataset that a variable depends on."""
    return frozenset(variable.reads) | (frozenset({EVERY_COLUMN}) if variable.reads_row else frozenset())
