"""Settings: the project file, the environment, and secrets."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.unit.declare.builders import load, report


def test_settings_have_defaults_inside_the_project(tmp_path: Path) -> None:
    settings = load(tmp_path, "project: x").settings

    assert settings.lake == str(tmp_path / ".strandline/lake")
    assert settings.catalog == f"sqlite:///{tmp_path}/.strandline/catalog.db"
    assert settings.spark_master == "local[*]"
    assert settings.workers == 2


def test_relative_places_are_the_projects_and_uris_are_left_alone(tmp_path: Path) -> None:
    yaml = "project: x\nsettings: {{lake: {lake}, catalog: '{catalog}'}}"

    relative = load(tmp_path, yaml.format(lake="data/lake", catalog="sqlite:///state/c.db")).settings
    elsewhere = load(
        tmp_path, yaml.format(lake="s3a://bucket/lake", catalog="postgresql+psycopg://h/d")
    ).settings

    assert (relative.lake, relative.catalog) == (
        str(tmp_path / "data/lake"),
        f"sqlite:///{tmp_path}/state/c.db",
    )
    assert (elsewhere.lake, elsewhere.catalog) == ("s3a://bucket/lake", "postgresql+psycopg://h/d")


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    yaml = "project: x\nsettings: {lake: a, catalog: 'sqlite:///b.db', workers: 3, spark: {master: yarn}}"
    environ = {
        "STRANDLINE_LAKE": "/other/lake",
        "STRANDLINE_CATALOG": "sqlite:////other/c.db",
        "STRANDLINE_SPARK_MASTER": "local[1]",
        "STRANDLINE_WORKERS": "5",
    }

    settings = load(tmp_path, yaml, environ=environ).settings

    assert (settings.lake, settings.catalog) == ("/other/lake", "sqlite:////other/c.db")
    assert (settings.spark_master, settings.workers) == ("local[1]", 5)


def test_spark_settings_become_the_text_that_spark_takes(tmp_path: Path) -> None:
    yaml = "project: x\nsettings: {spark: {conf: {spark.a: true, spark.b: 8, spark.c: 2g}}}"

    assert load(tmp_path, yaml).settings.spark_conf == {"spark.a": "true", "spark.b": "8", "spark.c": "2g"}


def test_secrets_are_filled_from_the_environment(tmp_path: Path) -> None:
    yaml = "project: x\nsettings: {catalog: 'postgresql+psycopg://me:${PG_PASSWORD}@host/db'}"

    settings = load(tmp_path, yaml, environ={"PG_PASSWORD": "hunter2"}).settings

    assert settings.catalog == "postgresql+psycopg://me:hunter2@host/db"


def test_a_secret_that_is_not_set_is_a_mistake_with_its_line(tmp_path: Path) -> None:
    yaml = "project: x\nsettings:\n  catalog: 'postgresql+psycopg://me:${PG_PASSWORD}@host/db'"

    reported = report(tmp_path, yaml)

    assert reported == (
        "strandline.yaml:3: `${PG_PASSWORD}` is read from the environment, where it is not set.\n"
        "  Set it before the call: `export PG_PASSWORD=...`.  [secret-not-set]"
    )


def test_a_secret_in_a_setting_that_is_overridden_need_not_be_set(tmp_path: Path) -> None:
    yaml = "project: x\nsettings: {catalog: 'postgresql+psycopg://me:${PG_PASSWORD}@host/db'}"

    assert report(tmp_path, yaml, environ={"STRANDLINE_CATALOG": "sqlite:////c.db"}) == ""


def test_a_secret_never_reaches_a_hash_or_a_mistake(tmp_path: Path) -> None:
    yaml = "project: x\nsources: {a: {files: 'd/*.csv', options: {password: '${SECRET}'}}}\n"

    one, other = (load(tmp_path, yaml, environ={"SECRET": secret}) for secret in ("hunter2", "other"))
    reported = report(
        tmp_path, yaml + "settings: {catalog: 'mysql://${SECRET}@host'}", environ={"SECRET": "hunter2"}
    )

    assert one.nodes[0].config == other.nodes[0].config
    assert "unknown-catalog" in reported
    assert "hunter2" not in reported


@pytest.mark.parametrize("number", ["two", "0", "-1", "1.5"])
@pytest.mark.parametrize("variable", ["STRANDLINE_WORKERS", "STRANDLINE_BATCH_ROWS"])
def test_a_number_that_is_none_is_a_mistake(variable: str, number: str, tmp_path: Path) -> None:
    assert f"`{variable}`" in report(tmp_path, "project: x", environ={variable: number})


def test_a_batch_has_five_million_rows_unless_another_number_is_declared(tmp_path: Path) -> None:
    yaml = "project: x\nsettings: {batch_rows: 1}"

    assert load(tmp_path, "project: x").settings.batch_rows == 5_000_000
    assert load(tmp_path, yaml).settings.batch_rows == 1
    assert load(tmp_path, yaml, environ={"STRANDLINE_BATCH_ROWS": "7"}).settings.batch_rows == 7
    assert "`batch_rows` is `0` in `settings`." in report(tmp_path, yaml.replace("1", "0"))


def test_the_calendar_takes_month_and_day(tmp_path: Path) -> None:
    calendar = load(tmp_path, "project: x\ntimezone: Asia/Kolkata\nfinancial_year_starts: 04-01").calendar

    assert (calendar.timezone, calendar.year_starts_month, calendar.year_starts_day) == ("Asia/Kolkata", 4, 1)


@pytest.mark.parametrize("day", ["13-01", "02-29", "04-31", "april", "4"])
def test_a_day_that_not_every_year_has_starts_no_financial_year(day: str, tmp_path: Path) -> None:
    assert "financial_year_starts" in report(tmp_path, f"project: x\nfinancial_year_starts: '{day}'")


@pytest.mark.parametrize(
    ("zone", "meant"),
    [("asia/kolkata", "Asia/Kolkata"), ("Kolkata", "Asia/Kolkata"), ("Europe/Berln", "Europe/Berlin")],
)
def test_a_misspelt_time_zone_shows_the_nearest(zone: str, meant: str, tmp_path: Path) -> None:
    assert f"Did you mean `{meant}`?" in report(tmp_path, f"project: x\ntimezone: {zone}")


@pytest.mark.parametrize(
    ("text", "keep"),
    [("7 days", timedelta(days=7)), ("36 hours", timedelta(hours=36)), ("2 weeks", timedelta(weeks=2))],
)
def test_how_long_everything_is_kept_is_a_length_of_time(tmp_path: Path, text: str, keep: timedelta) -> None:
    assert load(tmp_path, "project: x").settings.keep == timedelta(days=30)
    assert load(tmp_path, f"project: x\nsettings: {{keep: {text}}}").settings.keep == keep


@pytest.mark.parametrize("text", ["0 days", "30", "forever", "59 minutes", "999999 days"])
def test_too_short_a_time_or_none_at_all_is_a_mistake(tmp_path: Path, text: str) -> None:
    """A reader that has just begun must be able to finish."""
    assert "`settings.keep`" in report(tmp_path, f"project: x\nsettings: {{keep: '{text}'}}")


@pytest.mark.parametrize(
    ("declared", "environ", "expected"),
    [
        ("", {}, "nothing"),
        ("fail_on: held", {}, "held"),
        ("fail_on: held", {"STRANDLINE_FAIL_ON": "nothing"}, "nothing"),
        ("", {"STRANDLINE_FAIL_ON": "held"}, "held"),
    ],
)
def test_what_a_run_fails_on_is_declared_or_comes_from_the_environment(
    tmp_path: Path, declared: str, environ: dict[str, str], expected: str
) -> None:
    assert (
        load(tmp_path, f"project: x\nsettings: {{{declared}}}", environ=environ).settings.fail_on == expected
    )


def test_a_wrong_word_for_what_a_run_fails_on_is_a_mistake(tmp_path: Path) -> None:
    wrong = report(tmp_path, "project: x\nsettings: {fail_on: hold}")
    outside = report(tmp_path, "project: x", environ={"STRANDLINE_FAIL_ON": "hold"})

    assert wrong.startswith("strandline.yaml:2: `fail_on` is `hold`")
    assert "Did you mean `held`?  [unknown-value]" in wrong
    assert outside.startswith("`STRANDLINE_FAIL_ON` is `hold`")
    assert outside.endswith("[unknown-value]")


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.session.timeZone",
        "spark.sql.ansi.enabled",
        "spark.sql.caseSensitive",
        "spark.sql.mapKeyDedupPolicy",
        "spark.databricks.delta.autoCompact.enabled",
        "spark.databricks.delta.stalenessLimit",
    ],
)
def test_a_setting_of_spark_that_may_change_results_is_refused(key: str, tmp_path: Path) -> None:
    reported = report(tmp_path, f"project: x\nsettings: {{spark: {{conf: {{{key}: x}}}}}}")

    assert "[conf-changes-results]" in reported
    assert f"`{key}`" in reported


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.shuffle.partitions",
        "spark.sql.adaptive.enabled",
        "spark.driver.memory",
        "spark.hadoop.fs.s3a.endpoint",
    ],
)
def test_a_setting_of_spark_that_changes_speed_or_place_is_taken(key: str, tmp_path: Path) -> None:
    assert report(tmp_path, f"project: x\nsettings: {{spark: {{conf: {{{key}: 1}}}}}}") == ""


@pytest.mark.parametrize(
    "key",
    ["spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions", "spark.driver.defaultJavaOptions"],
)
@pytest.mark.parametrize(
    "option", ["-Duser.timezone=Asia/Kolkata", "-Dfile.encoding=latin1", "-Duser.language=tr"]
)
def test_an_option_of_java_that_may_change_results_is_refused(key: str, option: str, tmp_path: Path) -> None:
    reported = report(tmp_path, f"project: x\nsettings: {{spark: {{conf: {{{key}: '-Xss4m {option}'}}}}}}")

    assert "[conf-changes-results]" in reported
    assert option.split("=")[0].split(".")[0] in reported


def test_an_option_of_java_that_changes_memory_is_taken(tmp_path: Path) -> None:
    assert (
        report(
            tmp_path,
            "project: x\nsettings: {spark: {conf: {spark.driver.extraJavaOptions: '-Xss4m -Dmy.app=1'}}}",
        )
        == ""
    )
