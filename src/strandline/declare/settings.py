"""Settings: where things are. The project file overrides defaults, the environment overrides both.

Secrets are filled in last.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from zoneinfo import available_timezones

from strandline.model.project import Calendar, FailOn, Settings
from strandline.model.report import Report, find_nearest, suggest
from strandline.model.thresholds import SHIPPED, Thresholds, parse_thresholds

from .head import Head
from .serve_settings import make_serve_settings
from .spec_types import Scalar
from .yaml_lines import DataPath, Document

_SECRET = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_URI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")
_DAY = re.compile(r"(\d\d?)-(\d\d?)")
_KEEP = re.compile(r"\s*(\d+)\s*(hour|day|week)s?\s*")
_SHORTEST_KEEP = timedelta(hours=1)
_DAYS_IN_MONTH = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Secrets:
    """Fills `${NAME}` from the environment. The declared text is hashed and shown, not the filled one."""

    def __init__(self, environ: Mapping[str, str], document: Document, report: Report) -> None:
        self._environ = environ
        self._document = document
        self._report = report

    def fill(self, text: str, path: DataPath) -> str:
        """The text with its secrets. A secret that is not set is reported and stays as written."""

        def value(secret: re.Match[str]) -> str:
            name = secret[1]
            if name in self._environ:
                return self._environ[name]
            what = f"`${{{name}}}` is read from the environment, where it is not set."
            self._report.add(
                "secret-not-set",
                what,
                f"Set it before the call: `export {name}=...`.",
                self._document.place(*path),
            )
            return secret[0]

        return _SECRET.sub(value, text)


def as_text(value: Scalar) -> str:
    """A value of `options` or `conf` as Spark expects it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def make_settings(
    head: Head,
    folder: Path,
    secrets: Secrets,
    environ: Mapping[str, str],
    document: Document,
    report: Report,
) -> Settings:
    spec = head.settings

    def choose(variable: str, declared: str | None, default: str, *path: str) -> str:
        return environ.get(variable) or (
            secrets.fill(declared, ("settings", *path)) if declared is not None else default
        )

    spark = spec.spark
    for key, value in (spark.conf if spark else {}).items():
        _check_conf(key, as_text(value), document, report)
    conf = {
        k: secrets.fill(as_text(v), ("settings", "spark", "conf", k))
        for k, v in (spark.conf if spark else {}).items()
    }
    return Settings(
        lake=_resolve_lake(choose("STRANDLINE_LAKE", spec.lake, ".strandline/lake", "lake"), folder),
        catalog=_resolve_catalog(
            choose("STRANDLINE_CATALOG", spec.catalog, "sqlite:///.strandline/catalog.db", "catalog"),
            folder,
            environ,
            document,
            report,
        ),
        spark_master=choose(
            "STRANDLINE_SPARK_MASTER", spark.master if spark else None, "local[*]", "spark", "master"
        ),
        spark_conf=conf,
        workers=_whole_number("STRANDLINE_WORKERS", spec.workers or 2, environ, report),
        lease_seconds=spec.lease_seconds or 60,
        keep=_keep("30 days" if spec.keep is None else spec.keep, document, report),
        batch_rows=_whole_number("STRANDLINE_BATCH_ROWS", spec.batch_rows or 5_000_000, environ, report),
        fail_on=_fail_on(spec.fail_on, environ, report),
        serve=make_serve_settings(spec.serve, document, report),
        thresholds=_thresholds(environ, report),
    )


_HARMLESS_CONF = (
    "spark.sql.shuffle.partitions",
    "spark.sql.adaptive.",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.broadcastTimeout",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.maxPartitionNum",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.openCostInBytes",
    "spark.sql.inMemoryColumnarStorage.",
    "spark.sql.codegen.",
    "spark.sql.join.preferSortMergeJoin",
    "spark.sql.sources.parallelPartitionDiscovery.",
    "spark.sql.parquet.compression.codec",
    "spark.sql.warehouse.dir",
    "spark.sql.catalog.",
    "spark.sql.ui.",
    "spark.sql.debug.",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.databricks.delta.snapshotPartitions",
    "spark.databricks.delta.optimizeWrite.",
)
"""The settings of Spark's SQL and of Delta that change how fast a result is computed, never the result."""
_JUDGED_CONF = ("spark.sql.", "spark.databricks.")
_DECIDING_JAVA = re.compile(
    r"-D(?:user\.|file\.encoding|sun\.jnu\.encoding|java\.locale\.|java\.time\.|jdk\.|sun\.timezone)"
)
"""Properties of Java on which results depend: its time zone, language, encoding and calendar."""


def _check_conf(key: str, value: str, document: Document, report: Report) -> None:
    """Settings are never hashed (they define where, not what), so none of them may change a result."""
    place = document.place("settings", "spark", "conf", key)
    if key.endswith("JavaOptions") and (deciding := _DECIDING_JAVA.search(value)):
        what = (
            f"`{key}` contains `{deciding[0]}`, which may change the result of a query."
            " The engine starts Java with the properties that results need."
        )
        report.add(
            "conf-changes-results", what, "Remove that option. Others, such as `-Xss4m`, may stay.", place
        )
    if key.startswith(_JUDGED_CONF) and not key.startswith(_HARMLESS_CONF):
        what = (
            f"`{key}` may change the result of a query,"
            " and settings are not part of the configuration that is recorded with rows."
        )
        remedy = (
            "Remove it. Among the settings of `spark.sql.` and `spark.databricks.` only those of performance"
            " may be set, such as `spark.sql.shuffle.partitions`."
        )
        report.add("conf-changes-results", what, remedy, place)


def _keep(text: str, document: Document, report: Report) -> timedelta:
    """A duration. It has a minimum, so that a reader that has just begun can finish."""
    match = _KEEP.fullmatch(text)
    length = timedelta(**{f"{match[2]}s": int(match[1])}) if match and len(match[1]) < 6 else timedelta()
    if length < _SHORTEST_KEEP:
        what = f"`settings.keep` is `{text}`, not a duration of at least one hour."
        report.add("wrong-type", what, "Write `30 days` or `36 hours`.", document.place("settings", "keep"))
    return length


def make_calendar(head: Head, document: Document, report: Report) -> Calendar:
    if head.timezone != "UTC" and head.timezone not in _list_zones():
        what = f"there is no time zone `{head.timezone}`."
        remedy = suggest_zone(head.timezone)
        report.add("unknown-timezone", what, remedy, document.place("timezone"))
    day = _DAY.fullmatch(head.financial_year_starts)
    month_number, day_number = (int(day[1]), int(day[2])) if day else (0, 0)
    if not (1 <= month_number <= 12 and 1 <= day_number <= _DAYS_IN_MONTH[month_number - 1]):
        what = (
            f"`financial_year_starts` is `{head.financial_year_starts}`, not a day that exists in every year."
        )
        report.add(
            "wrong-type",
            what,
            "Write month and day, such as `04-01`.",
            document.place("financial_year_starts"),
        )
        return Calendar(timezone=head.timezone)
    return Calendar(timezone=head.timezone, year_starts_month=month_number, year_starts_day=day_number)


def calendar_part(calendar: Calendar) -> object:
    """The part of a configuration on which rows depend if they are computed with the calendar."""
    return [calendar.timezone, calendar.year_starts_month, calendar.year_starts_day]


@cache
def _list_zones() -> frozenset[str]:
    """Every time zone. To list them opens a thousand files (30 ms)."""
    return frozenset(available_timezones())


def suggest_zone(zone: str) -> str:
    by_lower = {name.lower(): name for name in _list_zones()}
    if zone.lower() in by_lower:
        return f"Did you mean `{by_lower[zone.lower()]}`?"
    cities = {name.rsplit("/", 1)[-1].lower(): name for name in sorted(_list_zones())}
    if zone.rsplit("/", 1)[-1].lower() in cities:
        return f"Did you mean `{cities[zone.rsplit('/', 1)[-1].lower()]}`?"
    nearest = find_nearest(zone, by_lower)
    return (
        f"Did you mean `{by_lower[nearest]}`?" if nearest else "Write a name such as `Asia/Kolkata` or `UTC`."
    )


def _resolve_lake(lake: str, folder: Path) -> str:
    return lake if _URI.match(lake) else str((folder / lake).resolve())


def is_local(lake: str) -> bool:
    """Whether a resolved lake is a folder, written as a path or as `file:`."""
    return not _URI.match(lake) or lake.startswith("file:")


def _resolve_catalog(
    catalog: str, folder: Path, environ: Mapping[str, str], document: Document, report: Report
) -> str:
    if catalog.startswith("sqlite:///") and not catalog.startswith("sqlite:///:memory:"):
        return f"sqlite:///{(folder / catalog.removeprefix('sqlite:///')).resolve()}"
    if not catalog.startswith(("sqlite", "postgresql")):
        # The text may contain a password, so only its scheme is shown.
        scheme = catalog.split(":", 1)[0] if ":" in catalog else catalog[:20]
        where = "`STRANDLINE_CATALOG`" if environ.get("STRANDLINE_CATALOG") else "`settings.catalog`"
        what = f"{where} starts with `{scheme}`, which is not a catalog that Strandline supports."
        remedy = (
            "Write `sqlite:///.strandline/catalog.db` or"
            " `postgresql+psycopg://user:${PASSWORD}@host/database`."
        )
        report.add(
            "unknown-catalog",
            what,
            remedy,
            None if environ.get("STRANDLINE_CATALOG") else document.place("settings", "catalog"),
        )
    return catalog


def _thresholds(environ: Mapping[str, str], report: Report) -> Thresholds:
    """Only for tests: the project file cannot set them."""
    text = environ.get("STRANDLINE_THRESHOLDS", "")
    try:
        return parse_thresholds(text)
    except ValueError as error:
        what = f"`STRANDLINE_THRESHOLDS` contains `{error}`, which is not a threshold with its size."
        report.add("wrong-type", what, "Unset it; only Strandline's own tests need it.")
        return SHIPPED


def _whole_number(variable: str, declared: int, environ: Mapping[str, str], report: Report) -> int:
    text = environ.get(variable)
    if not text:
        return declared
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    report.add(
        "wrong-type",
        f"`{variable}` is `{text}`, not a whole number of at least 1.",
        f"Set it to a number, such as `{declared}`.",
    )
    return declared


def _fail_on(declared: str | None, environ: Mapping[str, str], report: Report) -> FailOn:
    text = environ.get("STRANDLINE_FAIL_ON") or declared or FailOn.NOTHING
    if text in set(FailOn):
        return FailOn(text)
    report.add(
        "unknown-value",
        f"`STRANDLINE_FAIL_ON` is `{text}`, which is not a valid value.",
        suggest(text, set(FailOn), "values"),
    )
    return FailOn.NOTHING
