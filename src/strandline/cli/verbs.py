"""The verbs, and what is shown of them before any of their modules is loaded."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    name: str
    usage: str
    summary: str

    @property
    def module(self) -> str:
        return f"strandline.cli.{self.name.replace('-', '_')}"


VERBS: tuple[Verb, ...] = (
    Verb(name="init", usage="[DIR] [--example NAME]", summary="write a small runnable project"),
    Verb(name="check", usage="", summary="load the project and report every mistake"),
    Verb(
        name="plan",
        usage="[--select S] [--as-of T]",
        summary="what a run would do, why, how, and how much against a full recompute",
    ),
    Verb(
        name="run",
        usage="[--select S] [--as-of T] [--fail-on held]",
        summary="take in what is new and bring everything up to date",
    ),
    Verb(
        name="status",
        usage="[NAME]",
        summary="what is fresh, behind, stale, frozen or failed, and since when",
    ),
    Verb(name="query", usage="SQL [--fresh] [--known-at T]", summary="read published data with SQL"),
    Verb(name="history", usage="DATASET KEY...", summary="every fact about one key, and which one won"),
    Verb(name="verify", usage="[NAME...] [--sample P%]", summary="recompute in full and compare row by row"),
    Verb(name="explain", usage="NAME", summary="how a node is kept up to date, and why"),
    Verb(
        name="invalidate",
        usage="DATASET (--where EXPR | --partition P)",
        summary="record that a scope must be processed again, and why",
    ),
    Verb(
        name="backfill",
        usage="NAME... (--partitions A,B | --where EXPR | ...)",
        summary="run again with the current configuration",
    ),
    Verb(name="quarantine", usage="DATASET [--limit N] [--release]", summary="what was refused and why"),
    Verb(
        name="maintain",
        usage="[NAME] [--dry-run]",
        summary="compact and clean tables, never beyond what is still needed",
    ),
    Verb(
        name="serve",
        usage="[--host H] [--port N] [--no-dispatch] [--idle-stop T]",
        summary="HTTP, GraphQL, metrics, a warm Spark that does the work, and the deliveries",
    ),
    Verb(
        name="deliveries",
        usage="[--dead] [--send] [--replay ID | --since T] ...",
        summary="what was sent to endpoints, what failed; send what is due",
    ),
    Verb(name="key", usage="NAME --role ROLE", summary="make an access key of the server"),
    Verb(name="rebuild-catalog", usage="", summary="rebuild the catalog from the tables alone"),
    Verb(name="doctor", usage="[--deep | --adopt [NAME...]]", summary="what is wrong here and what to do"),
)
