"""A view, which is built after its dataset."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from strandline.declare.conditions import make_condition
from strandline.declare.loading import Loading
from strandline.declare.names import check_column_name
from strandline.declare.row_keys import check_row_key
from strandline.declare.settings import calendar_part
from strandline.declare.yaml_lines import DataPath
from strandline.model.condition_json import condition_to_json
from strandline.model.errors import Place
from strandline.model.hashing import make_config
from strandline.model.node import By, Input, Node, NodeConfig
from strandline.model.project import Calendar
from strandline.model.publishing import Calculated, View
from strandline.model.report import Report, find_nearest, suggest
from strandline.model.traits import Traits
from strandline.sql.checks import check_deterministic, check_references, check_row_wise
from strandline.sql.known_columns import NOTHING, Known
from strandline.sql.parse import hashed_sql, parse_expression, uses_calendar
from strandline.sql.row_names import find_stars

from .spec import ViewSpec

_CLOCK = "Use a column of the row, such as the time at which it happened."


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewDraft:
    name: str
    spec: ViewSpec
    path: DataPath
    place: Place
    dataset: str
    views: Collection[str]
    """The names of all views."""

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.dataset,)

    @property
    def guessed(self) -> Collection[str]:
        return () if self.dataset == self.spec.from_ else (self.dataset,)

    def settle(self, loading: Loading) -> "ViewDraft":
        name, place = self.spec.from_, loading.document.place(*self.path, "from")
        others = [table for table in loading.tables if table not in self.views]
        if name in self.views:
            what = f"the view `{self.name}` is made from `{name}`, which is a view."
            remedy = "Make it from the dataset of that view, and add its condition by `_and`."
            loading.report.add("view-of-view", what, remedy, place)
            return replace(self, dataset="")
        if not name or name in loading.tables or name in loading.registry.broken:
            return self
        what = f"the view `{self.name}` is made from `{name}`, which is not a dataset."
        loading.report.add("unknown-dataset", what, suggest(name, others, "datasets"), place)
        return replace(self, dataset=find_nearest(name, others) or name)

    def build(self, loading: Loading) -> None:
        known, mistakes = loading.known.get(self.dataset, NOTHING), len(loading.report)
        understood = self.dataset in loading.known and self.dataset not in loading.registry.broken
        understood &= not self.guessed
        report = loading.report_of(*self.path)
        if understood:
            place = loading.document.place(*self.path, "from")
            check_row_key(self.dataset, known, f"the view `{self.name}`", place, report)
        else:
            report = report.without(("unknown-column",))
        what = f"`where` of the view `{self.name}`"
        document = loading.document
        where = make_condition(self.spec.where, what, (*self.path, "where"), known, document, report)
        calculated = self._make_calculated(known, loading, report)
        types = {**known.types, **dict.fromkeys(column.name for column in calculated)}
        names = None if known.names is None else known.names | set(types)
        loading.known[self.name] = replace(known, types=types, names=names)
        if not understood or len(loading.report) > mistakes:
            loading.mark_broken(self.name)
        if loading.right:
            view = View(
                name=self.name,
                place=self.place,
                dataset=loading.tables[self.dataset],
                key=known.row_key,
                where=where,
                calculated=calculated,
            )
            columns = loading.known[self.name].order
            loading.nodes.append(_node(view, self.dataset, loading, columns))

    def _make_calculated(self, known: Known, loading: Loading, report: Report) -> tuple[Calculated, ...]:
        calculated: list[Calculated] = []
        written: dict[str, str] = {}
        for word, sql in self.spec.calculated.items():
            path = (*self.path, "calculated", word)
            what, place = f"the column `{word}` of the view `{self.name}`", loading.document.place(*path)
            name = word.lower()
            if not check_column_name(name, place, report):
                continue
            if name in written:
                both = (
                    f"the columns `{written[name]}` and `{word}` of `{self.name}` are both `{name}`:"
                    " column names are lower-cased."
                )
                report.add("columns-coincide", both, "Rename one of them.", place)
                continue
            written[name] = word
            if known.names is not None and name in known.names:
                report.add(
                    "name-taken", f"{what} has the name of a column of `{self.dataset}`.", "Rename it.", place
                )

            def place_of(line: int, path: DataPath = path) -> Place:
                return loading.document.place_in_text(path, line)

            tree = parse_expression(sql, what, place_of, report)
            if tree is not None:
                check_deterministic(tree, sql, place_of, report, what, _CLOCK)
                check_row_wise(tree, what, place, report, sees="row")
                for line in find_stars(tree):
                    remedy = "Name each column that it needs."
                    report.add("star-in-expression", f"{what} uses `*`.", remedy, place_of(line))
                if known.names is not None:
                    check_references(tree, known.names, what, place, report)
            calculated.append(Calculated(name=name, sql=sql))
        return tuple(calculated)


def _node(view: View, dataset: str, loading: Loading, columns: tuple[str, ...]) -> Node:
    return Node(
        name=view.name,
        inputs=(Input(name=dataset, dataset=view.dataset, relation=By(columns=view.key)),),
        definition=view,
        config=_config(view, loading.calendar),
        traits=Traits(
            how=f"The rows of `{dataset}` for which the condition is true: rows of changed keys"
            f" ({', '.join(view.key)}) are looked at again, and only those that differ are replaced.",
            drawn_under="views",
            key=view.key,
            key_is_named_by="each row names its key",
            answers_invalidations=False,
            follows_declaration=True,
            time_unit=loading.get_time_unit(dataset),
        ),
        columns=columns,
    )


def _config(view: View, calendar: Calendar) -> NodeConfig:
    """Another key makes another table. Else each row is compared with what the view published before."""
    parts: dict[str, object] = {
        "from": view.dataset,
        "key": view.key,
        "where": condition_to_json(view.where),
        "calculated": {column.name: hashed_sql(column.sql) for column in view.calculated},
        "calendar": calendar_part(calendar)
        if any(uses_calendar(column.sql) for column in view.calculated)
        else None,
    }
    return make_config(parts, frozenset({"key"}))
