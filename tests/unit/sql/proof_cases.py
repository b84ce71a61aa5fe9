"""Pairs of SQL and the inputs that it proves to be related by the key (tenant_id, property_id).

`property` and `unit` have declared columns, `wide` has the columns of its CSV, `rates` has half of the key,
`tariffs` is read whole.
"""

from strandline.sql.known_columns import Known
from strandline.sql.proof import Table

KEY = ("tenant_id", "property_id")


def _declared(**types: str) -> Known:
    return Known(types=types, complete=True, names=frozenset(types))


TABLES = {
    "property": Table(
        known=_declared(tenant_id="string", property_id="string", status="string", area="bigint"), by=KEY
    ),
    "unit": Table(
        known=_declared(tenant_id="string", property_id="string", unit_id="bigint", size="bigint"), by=KEY
    ),
    "wide": Table(known=Known(types={}, complete=False, other_type="string"), by=KEY),
    "odd": Table(known=_declared(tenant_id="string", property_id="bigint", value="bigint"), by=KEY),
    "rates": Table(known=_declared(tenant_id="string", rate="bigint"), by=KEY),
    "tariffs": Table(known=_declared(tenant_id="string", status="string", fee="bigint"), by=()),
}

ON = "p.tenant_id = u.tenant_id AND p.property_id = u.property_id"

# (a) passes the key columns through unchanged
PASSED_THROUGH = {
    "select the key": ("SELECT tenant_id, property_id, status FROM property", "property"),
    "star": ("SELECT * FROM property WHERE status = 'ACTIVE'", "property"),
    "star of a table": ("SELECT p.*, area * 2 AS double_area FROM property p", "property"),
    "star of a table whose columns are not known": ("SELECT * FROM wide WHERE x > '1'", "wide"),
    "star except another column": ("SELECT * EXCEPT (status) FROM property", "property"),
    "star except a key column": ("SELECT * EXCEPT (tenant_id), 'x' AS tenant_id FROM property", ""),
    "a key column twice": ("SELECT *, upper(tenant_id) AS tenant_id FROM property", ""),
    "in any case": ("SELECT P.TENANT_ID, P.Property_Id FROM Property P", "property"),
    "a key column computed": ("SELECT upper(tenant_id) AS tenant_id, property_id FROM property", ""),
    "a key column cast": ("SELECT CAST(tenant_id AS string) AS tenant_id, property_id FROM property", ""),
    "another column in place of a key column": ("SELECT tenant_id, status AS property_id FROM property", ""),
    "key columns swapped": ("SELECT property_id AS tenant_id, tenant_id AS property_id FROM property", ""),
    "a key column left out": ("SELECT tenant_id, status FROM property", ""),
    "a constant in place of a key column": ("SELECT tenant_id, '*' AS property_id, area FROM property", ""),
    "through a CTE": ("WITH a AS (SELECT * FROM property) SELECT tenant_id, property_id FROM a", "property"),
    "through CTEs that rename and rename back": (
        "WITH a AS (SELECT tenant_id AS t, property_id AS p FROM property), "
        "b AS (SELECT t AS tenant_id, p FROM a) "
        "SELECT tenant_id, p AS property_id FROM b",
        "property",
    ),
    "through a CTE that renames another column": (
        "WITH a AS (SELECT tenant_id, status AS property_id FROM property) "
        "SELECT tenant_id, property_id FROM a",
        "",
    ),
    "through CTE columns by position": (
        "WITH a(t, p) AS (SELECT tenant_id, property_id FROM property) "
        "SELECT t AS tenant_id, p AS property_id FROM a",
        "property",
    ),
    "through CTE columns by position, swapped": (
        "WITH a(property_id, tenant_id) AS (SELECT tenant_id, property_id FROM property) "
        "SELECT tenant_id, property_id FROM a",
        "",
    ),
    "through a subquery": (
        "SELECT s.tenant_id, s.property_id FROM (SELECT * FROM property WHERE area > 1) s",
        "property",
    ),
    "a CTE hides the input's name": (
        "WITH property AS (SELECT tenant_id, property_id FROM unit) SELECT * FROM property",
        "unit",
    ),
    "rows made many": (
        "SELECT tenant_id, property_id, part FROM property "
        "LATERAL VIEW explode(split(status, ',')) parts AS part",
        "property",
    ),
    "ordered": ("SELECT * FROM property ORDER BY area", "property"),
    "cut": ("SELECT * FROM property ORDER BY area, tenant_id, property_id LIMIT 3", ""),
    "cut inside": (
        "SELECT * FROM (SELECT * FROM property ORDER BY area, property_id, tenant_id LIMIT 3) s",
        "",
    ),
    "it lacks a key column": ("SELECT tenant_id, rate AS property_id FROM rates", ""),
}

# (b) groups, de-duplicates or partitions its windows by lists containing the key
GROUPED = {
    "grouped by the key": (
        "SELECT tenant_id, property_id, count(*) AS n FROM unit GROUP BY tenant_id, property_id",
        "unit",
    ),
    "grouped by more than the key": (
        "SELECT tenant_id, property_id, status, sum(area) AS area FROM property "
        "GROUP BY status, property_id, tenant_id",
        "property",
    ),
    "grouped by places": ("SELECT tenant_id, property_id, count(*) AS n FROM unit GROUP BY 1, 2", "unit"),
    "grouped by a place that is no key column": (
        "SELECT tenant_id, max(property_id) AS property_id, size FROM unit GROUP BY 1, 3",
        "",
    ),
    "grouped by all": ("SELECT tenant_id, property_id, count(*) AS n FROM unit GROUP BY ALL", "unit"),
    "grouped by part of the key": (
        "SELECT tenant_id, max(property_id) AS property_id, count(*) AS n FROM unit GROUP BY tenant_id",
        "",
    ),
    "grouped by a computed key": (
        "SELECT tenant_id, upper(property_id) AS property_id, count(*) AS n FROM unit "
        "GROUP BY tenant_id, upper(property_id)",
        "",
    ),
    "grouped with totals": (
        "SELECT tenant_id, property_id, count(*) AS n FROM unit GROUP BY ROLLUP (tenant_id, property_id)",
        "",
    ),
    "aggregated as a whole": (
        "SELECT max(tenant_id) AS tenant_id, max(property_id) AS property_id FROM unit",
        "",
    ),
    "grouped, having": (
        "SELECT tenant_id, property_id FROM unit GROUP BY tenant_id, property_id HAVING sum(size) > 3",
        "unit",
    ),
    "grouped again by less": (
        "WITH a AS (SELECT tenant_id, property_id, count(*) AS n FROM unit GROUP BY tenant_id, property_id) "
        "SELECT tenant_id, min(property_id) AS property_id, sum(n) AS n FROM a GROUP BY tenant_id",
        "",
    ),
    "grouped twice": (
        "WITH a AS (SELECT tenant_id, property_id, size, count(*) AS n FROM unit GROUP BY ALL) "
        "SELECT tenant_id, property_id, sum(n) AS n FROM a GROUP BY tenant_id, property_id",
        "unit",
    ),
    "distinct": ("SELECT DISTINCT tenant_id, property_id FROM unit", "unit"),
    "distinct over less": ("SELECT DISTINCT tenant_id, '1' AS property_id FROM unit", ""),
    "a window over the key": (
        "SELECT *, row_number() OVER (PARTITION BY tenant_id, property_id ORDER BY unit_id, size) AS n "
        "FROM unit",
        "unit",
    ),
    "a window over the key and more": (
        "SELECT *, sum(size) OVER (PARTITION BY size, property_id, tenant_id) AS s FROM unit",
        "unit",
    ),
    "a window over less": ("SELECT *, sum(size) OVER (PARTITION BY tenant_id) AS s FROM unit", ""),
    "a window over everything": ("SELECT *, sum(size) OVER () AS s FROM unit", ""),
    "a named window over the key": (
        "SELECT *, sum(size) OVER w AS s FROM unit WINDOW w AS (PARTITION BY tenant_id, property_id)",
        "unit",
    ),
    "a named window over less": (
        "SELECT *, sum(size) OVER w AS s FROM unit WINDOW w AS (PARTITION BY tenant_id)",
        "",
    ),
    "a share of all groups": (
        "SELECT tenant_id, property_id, count(*) / sum(count(*)) OVER () AS share FROM unit "
        "GROUP BY tenant_id, property_id",
        "",
    ),
    "the latest of a key": (
        "SELECT tenant_id, property_id, size FROM (SELECT *, "
        "row_number() OVER (PARTITION BY tenant_id, property_id "
        "ORDER BY unit_id DESC, size DESC) AS n FROM unit) s WHERE n = 1",
        "unit",
    ),
}

# (c) is inner- or left-joined on all of them to an input so related
JOINED = {
    "inner join on the key": (
        f"SELECT p.tenant_id, p.property_id, u.size FROM property p JOIN unit u ON {ON}",
        "property unit",
    ),
    "inner join, the other's key given": (
        f"SELECT u.tenant_id, p.property_id FROM property p JOIN unit u ON {ON}",
        "property unit",
    ),
    "left join on the key": (
        f"SELECT p.tenant_id, p.property_id, u.size FROM property p LEFT JOIN unit u ON {ON}",
        "property unit",
    ),
    "left join, more conditions": (
        "SELECT p.tenant_id, p.property_id, u.size FROM property p "
        f"LEFT JOIN unit u ON {ON} AND u.size > p.area",
        "property unit",
    ),
    "left join, the right key given": (
        f"SELECT u.tenant_id, u.property_id FROM property p LEFT JOIN unit u ON {ON}",
        "",
    ),
    "left join on a part of the key": (
        "SELECT p.tenant_id, p.property_id, u.size FROM property p "
        "LEFT JOIN unit u ON p.tenant_id = u.tenant_id",
        "property",
    ),
    "inner join on a part of the key": (
        "SELECT p.tenant_id, p.property_id, u.size FROM property p JOIN unit u ON p.tenant_id = u.tenant_id",
        "property",
    ),
    "inner join with OR": (
        f"SELECT p.tenant_id, p.property_id, u.size FROM property p JOIN unit u ON {ON} OR u.size = p.area",
        "property",
    ),
    "null-safe": (
        "SELECT p.tenant_id, p.property_id, u.size FROM property p LEFT JOIN unit u "
        "ON p.tenant_id <=> u.tenant_id AND (u.property_id <=> p.property_id)",
        "property unit",
    ),
    "crossed columns": (
        "SELECT p.tenant_id, p.property_id FROM property p "
        "JOIN unit u ON p.tenant_id = u.property_id AND p.property_id = u.tenant_id",
        "property",
    ),
    "using": (
        "SELECT tenant_id, property_id, size FROM property JOIN unit USING (tenant_id, property_id)",
        "property unit",
    ),
    "left using": (
        "SELECT tenant_id, property_id, size FROM property LEFT JOIN unit USING (tenant_id, property_id)",
        "property unit",
    ),
    "using a part": (
        "SELECT property.tenant_id, property.property_id, size FROM property JOIN unit USING (tenant_id)",
        "property",
    ),
    "right join": (
        f"SELECT u.tenant_id, u.property_id, p.area FROM property p RIGHT JOIN unit u ON {ON}",
        "",
    ),
    "full join": (
        "SELECT coalesce(p.tenant_id, u.tenant_id) AS tenant_id, "
        "coalesce(p.property_id, u.property_id) AS property_id "
        f"FROM property p FULL JOIN unit u ON {ON}",
        "",
    ),
    "cross join": ("SELECT p.tenant_id, p.property_id, u.size FROM property p CROSS JOIN unit u", "property"),
    "comma join": (
        f"SELECT p.tenant_id, p.property_id, u.size FROM property p, unit u WHERE {ON}",
        "property",
    ),
    "semi join": (f"SELECT * FROM property p LEFT SEMI JOIN unit u ON {ON}", "property unit"),
    "anti join": (f"SELECT * FROM property p LEFT ANTI JOIN unit u ON {ON}", "property unit"),
    "anti join on a part of the key": (
        "SELECT * FROM property p LEFT ANTI JOIN unit u ON p.tenant_id = u.tenant_id",
        "property",
    ),
    "joined to aggregates of the key": (
        "WITH s AS (SELECT tenant_id, property_id, sum(size) AS size FROM unit "
        "GROUP BY tenant_id, property_id) "
        "SELECT p.tenant_id, p.property_id, s.size FROM property p "
        "LEFT JOIN s ON s.tenant_id = p.tenant_id AND s.property_id = p.property_id",
        "property unit",
    ),
    "joined to aggregates of less": (
        "WITH s AS (SELECT tenant_id, sum(size) AS size FROM unit GROUP BY tenant_id) "
        "SELECT p.tenant_id, p.property_id, s.size FROM property p LEFT JOIN s ON s.tenant_id = p.tenant_id",
        "property",
    ),
    "with a table read whole": (
        "SELECT p.tenant_id, p.property_id, t.fee FROM property p "
        "JOIN tariffs t ON t.tenant_id = p.tenant_id",
        "property",
    ),
    "left-joined to a table read whole": (
        "SELECT p.tenant_id, p.property_id, t.fee FROM tariffs t "
        "LEFT JOIN property p ON t.tenant_id = p.tenant_id",
        "",
    ),
    "inner-joined from a table read whole": (
        "SELECT t.tenant_id, p.property_id, t.fee FROM tariffs t "
        "JOIN property p ON t.tenant_id = p.tenant_id",
        "property",
    ),
    "of other types": (
        "SELECT p.tenant_id, p.property_id, o.value FROM property p "
        "JOIN odd o ON o.tenant_id = p.tenant_id AND o.property_id = p.property_id",
        "property",
    ),
    "with itself on the key": (
        "SELECT a.tenant_id, a.property_id, b.size FROM unit a JOIN unit b "
        "ON a.tenant_id = b.tenant_id AND a.property_id = b.property_id AND a.unit_id < b.unit_id",
        "unit",
    ),
    "with itself on less": (
        "SELECT a.tenant_id, a.property_id, b.size FROM unit a "
        "JOIN unit b ON a.tenant_id = b.tenant_id AND a.unit_id < b.unit_id",
        "",
    ),
    "one use proved and one not": (
        f"SELECT p.tenant_id, p.property_id, u.size FROM property p JOIN unit u ON {ON} "
        "CROSS JOIN (SELECT max(size) AS m FROM unit) m",
        "property",
    ),
    "a chain of joins": (
        f"SELECT p.tenant_id, p.property_id FROM property p JOIN unit u ON {ON} "
        "LEFT JOIN wide w ON w.tenant_id = u.tenant_id AND w.property_id = u.property_id",
        "property unit wide",
    ),
    "a chain through the right side of a left join": (
        f"SELECT p.tenant_id, p.property_id FROM property p LEFT JOIN unit u ON {ON} "
        "LEFT JOIN wide w ON w.tenant_id = u.tenant_id AND w.property_id = u.property_id",
        "property unit",
    ),
    "unqualified names that only one can have": (
        f"SELECT p.tenant_id, p.property_id, size, status FROM property p JOIN unit u ON {ON}",
        "property unit",
    ),
    "joins in brackets beside a use that would be proved": (
        "SELECT p.* FROM property p CROSS JOIN (property q JOIN unit u ON q.tenant_id = u.tenant_id)",
        "",
    ),
    "a bracket of a subquery and a table beside a use that would be proved": (
        "SELECT p.* FROM property p CROSS JOIN ((SELECT * FROM unit) u "
        "JOIN property q ON q.tenant_id = u.tenant_id)",
        "",
    ),
    "pivoted beside a use that would be proved": (
        "SELECT p.* FROM property p CROSS JOIN property PIVOT (sum(area) FOR status IN ('a', 'b')) q",
        "",
    ),
    "a lateral subquery beside a use that would be proved": (
        "SELECT p.*, l.m FROM property p "
        "CROSS JOIN LATERAL (SELECT max(area) AS m FROM property q WHERE q.tenant_id = p.tenant_id) l",
        "",
    ),
    "joins in brackets": (f"SELECT p.tenant_id, p.property_id FROM (property p JOIN unit u ON {ON})", ""),
}

SUBQUERIES = {
    "exists": (f"SELECT * FROM property p WHERE EXISTS (SELECT 1 FROM unit u WHERE {ON})", "property"),
    "in": ("SELECT * FROM property WHERE tenant_id IN (SELECT tenant_id FROM unit)", "property"),
    "not in": (
        "SELECT * FROM property WHERE property_id NOT IN (SELECT property_id FROM unit "
        "WHERE property_id IS NOT NULL)",
        "property",
    ),
    "scalar": ("SELECT *, (SELECT max(size) FROM unit) AS m FROM property", "property"),
    "scalar over itself": ("SELECT * FROM property WHERE area = (SELECT max(area) FROM property)", ""),
    "over a table read whole": (
        "SELECT * FROM property WHERE status IN (SELECT status FROM tariffs)",
        "property",
    ),
    "through a CTE": (
        "WITH s AS (SELECT tenant_id, property_id FROM unit) SELECT * FROM property "
        "WHERE area > (SELECT count(*) FROM s)",
        "property",
    ),
}

UNIONS = {
    "union all": (
        "SELECT tenant_id, property_id, area AS a FROM property "
        "UNION ALL SELECT tenant_id, property_id, size FROM unit",
        "property unit",
    ),
    "union": (
        "SELECT tenant_id, property_id FROM property UNION SELECT tenant_id, property_id FROM unit",
        "property unit",
    ),
    "a branch with the key swapped": (
        "SELECT tenant_id, property_id FROM property UNION ALL SELECT property_id, tenant_id FROM unit",
        "",
    ),
    "a branch with a computed key": (
        "SELECT tenant_id, property_id FROM property UNION ALL SELECT upper(tenant_id), property_id "
        "FROM unit",
        "property",
    ),
    "a branch over a table read whole": (
        "SELECT tenant_id, property_id FROM property UNION ALL SELECT tenant_id, status FROM tariffs",
        "property",
    ),
    "a branch of a constant": (
        "SELECT tenant_id, property_id FROM property UNION ALL SELECT 't', 'p'",
        "property",
    ),
    "stars of columns not known": ("SELECT * FROM wide UNION ALL SELECT * FROM wide", ""),
    "stars of known columns": ("SELECT * FROM property UNION ALL SELECT * FROM property", "property"),
    "grouped above": (
        "SELECT tenant_id, property_id, count(*) AS n "
        "FROM (SELECT tenant_id, property_id FROM property UNION ALL "
        "SELECT tenant_id, property_id FROM unit) x GROUP BY tenant_id, property_id",
        "property unit",
    ),
    "except": (
        "SELECT tenant_id, property_id FROM property EXCEPT SELECT tenant_id, property_id FROM unit",
        "",
    ),
    "intersect": (
        "SELECT tenant_id, property_id FROM property INTERSECT SELECT tenant_id, property_id FROM unit",
        "",
    ),
    "a cut union": (
        "SELECT tenant_id, property_id FROM property UNION ALL SELECT tenant_id, property_id FROM unit "
        "ORDER BY 1, 2 LIMIT 2",
        "",
    ),
    "of other types": (
        "SELECT tenant_id, property_id FROM property UNION ALL SELECT tenant_id, property_id FROM odd",
        "",
    ),
}

# SQL that is not on the list of what is understood, or that Spark reads differently from the parser. Nothing
# is proved, not even for the other inputs.
NOT_UNDERSTOOD = {
    "a name in a function": (
        "SELECT p.*, (SELECT sum(size) FROM identifier('unit')) AS t FROM property p",
        "",
    ),
    "a bare table": ("WITH u AS (TABLE unit) SELECT p.* FROM property p CROSS JOIN u", ""),
    "a table function": ("SELECT p.* FROM property p CROSS JOIN table_changes('unit', 1) u", ""),
    "an unknown function": ("SELECT p.*, look_up(area) AS x FROM property p", ""),
    "a pipe": ("FROM property |> WHERE area > 1 |> SELECT tenant_id, property_id", ""),
    "a sample": ("SELECT * FROM property TABLESAMPLE (10 PERCENT)", ""),
    "a version": ("SELECT * FROM property VERSION AS OF 3", ""),
    "a script": (
        "SELECT TRANSFORM (tenant_id, property_id) USING 'cat' AS (tenant_id, property_id) FROM property",
        "",
    ),
    "rows made of a query": (
        "SELECT p.* FROM property p CROSS JOIN VALUES ((SELECT count(*) FROM unit)) AS v(n)",
        "",
    ),
    "rows replaced": ("SELECT * REPLACE (upper(tenant_id) AS tenant_id) FROM property", ""),
    "a field left out of a star": ("SELECT * EXCEPT (p.status) FROM property p", ""),
    "united by name": (
        "SELECT tenant_id, property_id FROM property UNION ALL BY NAME SELECT tenant_id, property_id "
        "FROM unit",
        "",
    ),
    "a natural join": ("SELECT * FROM property NATURAL JOIN unit", ""),
    "a lateral query": (
        "SELECT p.*, l.n FROM property p, LATERAL (SELECT count(*) AS n FROM unit u WHERE u.size > p.area) l",
        "",
    ),
    "compared with any": ("SELECT * FROM property WHERE area = ANY (SELECT size FROM unit)", ""),
}

# By position: as the columns are declared
POSITIONS = {
    "names given to a table": (
        "SELECT x.t AS tenant_id, x.p AS property_id FROM property AS x(t, p, s, a)",
        "property",
    ),
    "names given to a table, swapped": (
        "SELECT x.tenant_id, x.property_id FROM property AS x(property_id, tenant_id, s, a)",
        "",
    ),
    "names given to a table whose columns are not known": (
        "SELECT x.t AS tenant_id, x.p AS property_id FROM wide AS x(t, p)",
        "",
    ),
    "names given to the star of USING, which comes first": (
        "SELECT x.t AS tenant_id, x.p AS property_id "
        "FROM (SELECT * FROM (SELECT status, tenant_id, property_id FROM property) a "
        "JOIN (SELECT size, tenant_id, property_id FROM unit) b "
        "USING (tenant_id, property_id)) AS x(t, p, s, n)",
        "property unit",
    ),
    "names given to the star of USING as if it stood in its place": (
        "SELECT x.t AS tenant_id, x.p AS property_id "
        "FROM (SELECT * FROM (SELECT status, tenant_id, property_id FROM property) a "
        "JOIN (SELECT size, tenant_id, property_id FROM unit) b "
        "USING (tenant_id, property_id)) AS x(s, t, p, n)",
        "",
    ),
}

CASES: dict[str, tuple[str, str]] = {
    f"{group}: {name}": case
    for group, cases in (
        ("passed", PASSED_THROUGH),
        ("grouped", GROUPED),
        ("joined", JOINED),
        ("subquery", SUBQUERIES),
        ("union", UNIONS),
        ("not understood", NOT_UNDERSTOOD),
        ("by position", POSITIONS),
    )
    for name, case in cases.items()
}
