"""Expected content of every dataset of examples/property_tax, computed in plain Python.

The model does not use the engine. It reads all messages, takes the newest about each key, and counts. Values
are formatted as in `--output json`: instants in UTC, decimals as text at their scale.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

Row = dict[str, Any]
Key = tuple[Any, ...]

INDIA = ZoneInfo("Asia/Kolkata")
DATASETS = ("property", "unit", "owner", "address", "demand", "demand_detail")


class Model:
    """The expected state after the files of a folder.

    `rows` is per dataset and job, `refused` and `offered` per fact dataset.
    """

    def __init__(self, data: Path) -> None:
        self.rows: dict[str, list[Row]] = {}
        self.refused: dict[str, list[str]] = {dataset: [] for dataset in DATASETS}
        self.offered: dict[str, int] = dict.fromkeys(DATASETS, 0)
        self._facts: dict[str, list[Row]] = {dataset: [] for dataset in DATASETS}
        self._unit_lists: list[tuple[Row, list[Row]]] = []
        for line in _received(data / "property"):
            self._take(line, self._take_property, ("property", "unit", "owner", "address"))
        for line in _received(data / "demand"):
            self._take(line, self._take_demand, ("demand", "demand_detail"))
        self._fold()
        self._run_jobs()

    def _take(self, line: str, take: Callable[[str, Row], None], datasets: Iterable[str]) -> None:
        try:
            message = json.loads(line, parse_float=Decimal)
        except json.JSONDecodeError:
            for dataset in datasets:
                self.offered[dataset] += 1
                self.refused[dataset].append(line)
        else:
            take(line, message)

    def _take_property(self, line: str, message: Row) -> None:
        content = message["property"]
        names = {"tenant_id": message.get("tenantId"), "property_id": content.get("propertyId")}
        rank = {
            "last_modified_at": content["auditDetails"]["lastModifiedTime"],
            "version": content.get("version", 0),
        }
        self._offer(
            "property",
            line,
            {
                **names,
                "property_type": content.get("propertyType"),
                "usage_category": content.get("usageCategory"),
                "ownership_category": content.get("ownershipCategory"),
                "status": content.get("status"),
                "land_area": _decimal(content.get("landArea"), 4),
                "created_at": content["auditDetails"]["createdTime"],
                **rank,
                "financial_year": financial_year(content["auditDetails"]["createdTime"]),
            },
            ("tenant_id", "property_id"),
        )
        units = [
            {
                **names,
                "unit_id": unit["unitId"],
                "floor_no": unit["floorNo"],
                "usage_category": unit["usageCategory"],
                "occupancy_type": unit["occupancyType"],
                "built_up_area": _decimal(unit["builtUpArea"], 4),
                **rank,
            }
            for unit in content.get("units") or []
        ]
        if content.get("units") is not None and None not in names.values():
            self._unit_lists.append(({**names, **rank}, units))
        self._offer_each("unit", line, units, ("tenant_id", "property_id", "unit_id"))
        owners = [
            {
                **names,
                "owner_id": owner["ownerId"],
                "name": owner["name"],
                "owner_type": owner.get("ownerType"),
                "status": owner.get("status") or "ACTIVE",
                **rank,
            }
            for owner in content.get("owners") or []
        ]
        self._offer_each("owner", line, owners, ("tenant_id", "property_id", "owner_id"))
        if (address := content.get("address")) is None:
            self.offered["address"] += 1
        else:
            place = {
                "door_no": address["doorNo"],
                "street": address["street"],
                "locality_code": address["locality"]["code"],
                "locality": address["locality"]["name"],
                "city": address["city"],
                "pincode": address["pincode"],
            }
            self._offer("address", line, {**names, **place, **rank}, ("tenant_id", "property_id"))

    def _take_demand(self, line: str, message: Row) -> None:
        content = message["demand"]
        names = {"tenant_id": message.get("tenantId"), "demand_id": content.get("id")}
        rank = {
            "last_modified_at": content["auditDetails"]["lastModifiedTime"],
            "version": content.get("version", 0),
        }
        self._offer(
            "demand",
            line,
            {
                **names,
                "consumer_code": content["consumerCode"],
                "business_service": content.get("businessService", "PT"),
                "status": content.get("status", "ACTIVE"),
                "is_payment_completed": content["isPaymentCompleted"],
                "tax_period_from": content["taxPeriodFrom"],
                "tax_period_to": content["taxPeriodTo"],
                **rank,
                "financial_year": financial_year(content["taxPeriodFrom"]),
            },
            ("tenant_id", "demand_id"),
        )
        details = [
            {
                **names,
                "detail_id": detail.get("id") or detail["taxHeadMasterCode"],
                "tax_head_code": detail["taxHeadMasterCode"],
                "tax_amount": _decimal(detail["taxAmount"], 2),
                "collection_amount": _decimal(detail["collectionAmount"], 2),
                **rank,
                "month": local(rank["last_modified_at"]).strftime("%Y-%m"),
            }
            for detail in content["demandDetails"]
        ]
        self._offer_each(
            "demand_detail", line, details, ("tenant_id", "demand_id", "detail_id", "tax_amount")
        )

    def _offer(self, dataset: str, line: str, row: Row, needed: tuple[str, ...]) -> None:
        self.offered[dataset] += 1
        if any(row[column] is None for column in needed):
            self.refused[dataset].append(line)
        else:
            self._facts[dataset].append(row)

    def _offer_each(self, dataset: str, line: str, rows: list[Row], needed: tuple[str, ...]) -> None:
        if not rows:
            self.offered[dataset] += 1
        for row in rows:
            self._offer(dataset, line, row, needed)

    def _fold(self) -> None:
        self.rows["property"] = _newest(self._facts["property"], ("tenant_id", "property_id"))
        self.rows["owner"] = _newest(self._facts["owner"], ("tenant_id", "property_id", "owner_id"))
        self.rows["address"] = _newest(self._facts["address"], ("tenant_id", "property_id"))
        self.rows["demand"] = _newest(self._facts["demand"], ("tenant_id", "demand_id"))
        self.rows["demand_detail"] = _newest(
            self._facts["demand_detail"], ("tenant_id", "demand_id", "detail_id")
        )
        lists = [{**parent, "units": units} for parent, units in self._unit_lists]
        self.rows["unit"] = [
            unit for newest in _newest(lists, ("tenant_id", "property_id")) for unit in newest["units"]
        ]

    def _run_jobs(self) -> None:
        demands = {
            (demand["tenant_id"], demand["demand_id"]): demand
            for demand in self.rows["demand"]
            if demand["status"] == "ACTIVE"
        }
        details = [
            (demands[detail["tenant_id"], detail["demand_id"]], detail)
            for detail in self.rows["demand_detail"]
            if (detail["tenant_id"], detail["demand_id"]) in demands
        ]
        self.rows["demand_outstanding"] = [
            {
                "tenant_id": tenant_id,
                "demand_id": demand_id,
                "property_id": group[0][0]["consumer_code"],
                "financial_year": group[0][0]["financial_year"],
                **_balance(detail for _, detail in group),
            }
            for (tenant_id, demand_id), group in _grouped(
                details, lambda pair: (pair[0]["tenant_id"], pair[0]["demand_id"])
            )
        ]
        self.rows["property_outstanding"] = [
            {
                "tenant_id": tenant_id,
                "property_id": property_id,
                "demands": len({demand["demand_id"] for demand, _ in group}),
                **_balance(detail for _, detail in group),
                "unpaid_since": min(
                    (
                        demand["financial_year"]
                        for demand, detail in group
                        if detail["tax_amount"] > detail["collection_amount"]
                    ),
                    default=None,
                ),
            }
            for (tenant_id, property_id), group in _grouped(
                details, lambda pair: (pair[0]["tenant_id"], pair[0]["consumer_code"])
            )
        ]
        self.rows["defaulters"] = list(self._defaulters())
        self.rows["demand_collection_by_year"] = [
            {
                "tenant_id": tenant_id,
                "financial_year": year,
                "demands": len(group),
                "tax_amount": (tax := sum(row["tax_amount"] for row in group)),
                "collection_amount": (collected := sum(row["collection_amount"] for row in group)),
                "outstanding": tax - collected,
                "collected_percent": _percent(collected, tax),
            }
            for (tenant_id, year), group in _grouped(
                self.rows["demand_outstanding"], _columns("tenant_id", "financial_year")
            )
        ]
        self.rows["payments"] = list(self._payments())
        self.rows["collections_by_month"] = [
            {
                "tenant_id": tenant_id,
                "month": month,
                "payments": len(group),
                "amount": sum(row["amount"] for row in group),
            }
            for (tenant_id, month), group in _grouped(self.rows["payments"], _columns("tenant_id", "month"))
        ]
        self._count_properties()

    def _defaulters(self) -> Iterable[Row]:
        outstanding = {
            (row["tenant_id"], row["property_id"]): row
            for row in self.rows["property_outstanding"]
            if row["outstanding"] > 0
        }
        places = {(row["tenant_id"], row["property_id"]): row["locality"] for row in self.rows["address"]}
        names = dict(
            _grouped(
                (row for row in self.rows["owner"] if row["status"] == "ACTIVE"),
                _columns("tenant_id", "property_id"),
            ),
        )
        for row in self.rows["property"]:
            key = row["tenant_id"], row["property_id"]
            if row["status"] == "ACTIVE" and key in outstanding:
                owners = [owner["name"] for owner in names.get(key, [])]
                yield {
                    "tenant_id": row["tenant_id"],
                    "property_id": row["property_id"],
                    "usage_category": row["usage_category"],
                    "first_owner": min(owners, default=None),
                    "owners": len(owners) or None,
                    "locality": places.get(key),
                    "outstanding": outstanding[key]["outstanding"],
                    "unpaid_since": outstanding[key]["unpaid_since"],
                }

    def _payments(self) -> Iterable[Row]:
        for _, group in _grouped(
            self._facts["demand_detail"], _columns("tenant_id", "demand_id", "detail_id")
        ):
            collected = Decimal(0)
            for fact in sorted(group, key=_columns("last_modified_at", "version")):
                if amount := fact["collection_amount"] - collected:
                    collected = fact["collection_amount"]
                    names = {
                        column: fact[column]
                        for column in ("tenant_id", "demand_id", "detail_id", "tax_head_code")
                    }
                    yield {
                        **names,
                        "paid_at": fact["last_modified_at"],
                        "month": fact["month"],
                        "amount": amount,
                    }

    def _count_properties(self) -> None:
        properties = self.rows["property"]
        self.rows["property_counts_by_tenant"] = [
            {
                "tenant_id": tenant_id,
                "properties": len(group),
                "active": _active(group),
                "share_percent": _percent(Decimal(len(group)), Decimal(len(properties))),
            }
            for (tenant_id,), group in _grouped(properties, _columns("tenant_id"))
        ]
        self.rows["property_counts_by_usage"] = [
            {
                "tenant_id": tenant_id,
                "usage_category": usage,
                "properties": len(group),
                "active": _active(group),
                "land_area": sum(row["land_area"] for row in group),
            }
            for (tenant_id, usage), group in _grouped(properties, _columns("tenant_id", "usage_category"))
        ]
        self.rows["property_counts_by_ownership"] = [
            {
                "tenant_id": tenant_id,
                "ownership_category": ownership,
                "properties": len(group),
                "active": _active(group),
            }
            for (tenant_id, ownership), group in _grouped(
                properties, _columns("tenant_id", "ownership_category")
            )
        ]
        self.rows["new_properties_by_year"] = [
            {"tenant_id": tenant_id, "financial_year": year, "properties": len(group)}
            for (tenant_id, year), group in _grouped(properties, _columns("tenant_id", "financial_year"))
        ]
        active_demands = [row for row in self.rows["demand"] if row["status"] == "ACTIVE"]
        self.rows["properties_with_demand_by_year"] = [
            {
                "tenant_id": tenant_id,
                "financial_year": year,
                "properties": len({row["consumer_code"] for row in group}),
                "demands": len(group),
            }
            for (tenant_id, year), group in _grouped(active_demands, _columns("tenant_id", "financial_year"))
        ]

    def as_json(self, dataset: str) -> list[Row]:
        return [
            {column: _spelt(column, value) for column, value in row.items()} for row in self.rows[dataset]
        ]


def local(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone(INDIA)


def financial_year(milliseconds: int) -> str:
    when = local(milliseconds)
    begins = when.year if when.month >= 4 else when.year - 1
    return f"{begins}-{(begins + 1) % 100:02d}"


def _received(folder: Path) -> Iterable[str]:
    """Every line of every file. A file that repeats another one adds nothing."""
    contents = dict.fromkeys(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.jsonl")))
    return (line for content in contents for line in content.splitlines())


def _decimal(value: object, scale: int) -> Decimal | None:
    """None for an absent value and for text that is not a number.

    In both cases the row is refused if the column is required.
    """
    try:
        return None if value is None else Decimal(str(value)).quantize(Decimal(1).scaleb(-scale))
    except InvalidOperation:
        return None


def _newest(facts: list[Row], key: tuple[str, ...]) -> list[Row]:
    """The newest fact of each key. Facts that tie must be equal, so it does not matter which wins."""
    newest: dict[Key, Row] = {}
    rank = _columns("last_modified_at", "version")
    for fact in facts:
        name = tuple(fact[column] for column in key)
        best = newest.setdefault(name, fact)
        if rank(fact) > rank(best):
            newest[name] = fact
        assert rank(fact) != rank(best) or fact == best, (
            f"the generator made a tie that only a hash can break: {fact}"
        )
    return list(newest.values())


def _columns(*names: str) -> Callable[[Row], Key]:
    return lambda row: tuple(row[name] for name in names)


def _grouped(rows: Iterable[Any], key: Callable[[Any], Key]) -> Iterable[tuple[Key, list[Any]]]:
    groups: defaultdict[Key, list[Any]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups.items()


def _balance(details: Iterable[Row]) -> Row:
    amounts = [(detail["tax_amount"], detail["collection_amount"]) for detail in details]
    tax, collected = sum(tax for tax, _ in amounts), sum(collected for _, collected in amounts)
    return {"tax_amount": tax, "collection_amount": collected, "outstanding": tax - collected}


def _active(rows: list[Row]) -> int:
    return sum(row["status"] == "ACTIVE" for row in rows)


def _percent(part: Decimal, whole: Decimal) -> Decimal | None:
    return (100 * part / whole).quantize(Decimal("0.01"), ROUND_HALF_UP) if whole else None


def _spelt(column: str, value: Any) -> Any:
    if column.endswith("_at") or column in ("tax_period_from", "tax_period_to"):
        return (
            datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.")
            + f"{value % 1000:03d}000Z"
        )
    return str(value) if isinstance(value, Decimal) else value
