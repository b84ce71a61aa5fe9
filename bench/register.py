"""The data: a register's change log crossed with tenant numbers, and increments to it, made by DuckDB.

The register is Toronto's short-term rental register where the file exists (34,578 changes of 19,021 keys in
883 versions). Otherwise a similar one is generated. An increment touches a share of the keys.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import duckdb

CHANGES = Path(__file__).resolve().parents[2] / "shared/data/2_municipal_records/toronto_str_changes.parquet"
KEY = ("tenant", "registration_number")
ORDER = "snapshot_seq"
COLUMNS = (
    "tenant",
    "registration_number",
    "snapshot_seq",
    "snapshot_at",
    "op",
    "location_key",
    "postal_code",
    "property_type",
    "ward_number",
    "ward_name",
)
FILES = 16
THREADS = 2

# Number of keys of the real register with 1, 2, ... 8 changes.
_KEYS_BY_CHANGES = (7255, 9469, 1113, 967, 145, 55, 13, 4)


@dataclass(slots=True)
class Register:
    """A register of some tenants under `folder`, and the increments made for it so far."""

    folder: Path
    tenants: int
    origin: str
    facts: int
    keys: int
    last_sequence: int
    increments_made: int = 0

    @property
    def base(self) -> list[Path]:
        """The files of the initial load."""
        return sorted((self.folder / "base").glob("*.parquet"))

    def make_increment(self, keys: int, tenants: int | None = None) -> Path:
        """Write one new fact for each of `keys` keys, later than all before and with changed values.

        The keys are a pseudo-random choice from the first `tenants` tenants.
        """
        self.increments_made += 1
        number = self.increments_made
        path = self.folder / "increments" / f"increment_{number:03}.parquet"
        with self._connect() as connection:
            connection.execute(
                f"""
                COPY (
                    SELECT tenant, registration_number, {self.last_sequence + number}::BIGINT AS snapshot_seq,
                        TIMESTAMP '2030-01-01' + INTERVAL {number} DAY AS snapshot_at,
                        CASE WHEN hash(registration_number, tenant, {number}) % 20 = 0 THEN 'D' ELSE 'U' END
                            AS op,
                        location_key, 'Z{number:03}' AS postal_code, property_type,
                        ((tenant + {number}) % 25)::VARCHAR AS ward_number, ward_name
                    FROM latest
                    CROSS JOIN (SELECT unnest(range(1, {(tenants or self.tenants) + 1}))::BIGINT AS tenant)
                    ORDER BY hash(tenant, registration_number, {number}) LIMIT {keys}
                ) TO '{path}' (FORMAT parquet)
                """
            )
        return path

    def _connect(self) -> duckdb.DuckDBPyConnection:
        return duckdb.connect(str(self.folder / "register.duckdb"), config={"threads": THREADS})


def make_register(folder: Path, tenants: int) -> Register:
    """Write the facts of an initial load, in the order of their versions, to a few Parquet files."""
    for name in ("base", "increments"):
        (folder / name).mkdir(parents=True)
    origin = CHANGES.name if CHANGES.exists() else "generated"
    with duckdb.connect(str(folder / "register.duckdb"), config={"threads": THREADS}) as connection:
        changes = f"SELECT * FROM '{CHANGES}'" if CHANGES.exists() else _generated()
        connection.execute(
            f"CREATE TABLE changes AS SELECT *, ntile({FILES}) "
            f"OVER (ORDER BY snapshot_seq, registration_number) AS tile FROM ({changes})"
        )
        connection.execute(
            "CREATE TABLE latest AS SELECT * FROM changes"
            " QUALIFY row_number() OVER (PARTITION BY registration_number ORDER BY snapshot_seq DESC) = 1"
        )
        for tile in range(1, FILES + 1):
            connection.execute(
                f"""
                COPY (
                    SELECT {", ".join(COLUMNS)} FROM changes
                    CROSS JOIN (SELECT unnest(range(1, {tenants + 1}))::BIGINT AS tenant)
                    WHERE tile = {tile} ORDER BY snapshot_seq, hash(tenant, registration_number)
                ) TO '{folder}/base/base_{tile:02}.parquet' (FORMAT parquet)
                """
            )
        facts, keys, last = (
            connection.execute(
                "SELECT count(*), count(DISTINCT registration_number), max(snapshot_seq) FROM changes"
            ).fetchone()
            or ()
        )
    return Register(
        folder=folder,
        tenants=tenants,
        origin=origin,
        facts=facts * tenants,
        keys=keys * tenants,
        last_sequence=last,
    )


def deliver(file: Path, target: Path) -> Path:
    """Put a file into a source's folder. A link: the same bytes for everyone."""
    target.mkdir(parents=True, exist_ok=True)
    arrived = target / file.name
    os.link(file, arrived)
    return arrived


def _generated() -> str:
    """Generate changes like the real ones: keys appear, most disappear, some come back."""
    bounds, upto = [], 0
    for changes, keys in enumerate(_KEYS_BY_CHANGES, start=1):
        upto += keys
        bounds.append(f"WHEN k < {upto} THEN {changes}")
    return f"""
        WITH keys AS (SELECT k, CASE {" ".join(bounds)} END AS n FROM range({upto}) t(k)),
        numbered AS (SELECT k, n, unnest(range(1, n + 1)) AS nth FROM keys)
        SELECT (1 + (883 * (nth - 1) + hash(k, nth) % 883) // n)::BIGINT AS snapshot_seq,
            TIMESTAMP '2024-02-20' + INTERVAL 1 DAY * ((883 * (nth - 1) + hash(k, nth) % 883) // n)::BIGINT
                AS snapshot_at,
            CASE WHEN nth % 2 = 0 THEN 'D' ELSE 'I' END AS op,
            'STR-' || (2000 + k % 25) || '-' || upper(left(md5(k::VARCHAR), 6)) || k AS registration_number,
            left(md5('place' || k), 16) AS location_key,
            'M' || k % 9 || 'ABCEGHJKLM'[1 + k % 10] AS postal_code,
            ['Condominium', 'Single/Semi-detached House', 'Apartment', 'Townhouse'][1 + k % 4]
                AS property_type,
            (1 + k % 25)::VARCHAR AS ward_number, 'Ward ' || (1 + k % 25) AS ward_name
        FROM numbered
    """
