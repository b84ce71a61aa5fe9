"""Three days of messages from the property-tax system of four towns.

`python generate.py DAY` writes those of day 1, 2 or 3 under data/. The messages are always the same, and they
are like real ones: most are fine, and some come late, twice, shuffled, tied, broken or without their key.
Each such case is a function below, named after what goes wrong.
"""

import copy
import itertools
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

Message = dict[str, Any]

SEED = 2024
PROPERTIES = 2000
DATES = ("2024-01-12", "2024-01-13", "2024-01-14")
NEW_ON_DAY = {2: 8, 3: 7}
TOWNS = {
    "pb.amritsar": "Amritsar",
    "pb.jalandhar": "Jalandhar",
    "pb.ludhiana": "Ludhiana",
    "pb.patiala": "Patiala",
}
BUSY_ON_DAY = {2: ("pb.amritsar", "pb.jalandhar", "pb.ludhiana"), 3: ("pb.amritsar", "pb.patiala")}
INDIA = timezone(timedelta(hours=5, minutes=30))

USAGES = ("RESIDENTIAL", "RESIDENTIAL", "RESIDENTIAL", "COMMERCIAL", "MIXED", "INDUSTRIAL")
OWNERSHIPS = (
    "INDIVIDUAL.SINGLEOWNER",
    "INDIVIDUAL.SINGLEOWNER",
    "INDIVIDUAL.MULTIPLEOWNERS",
    "INSTITUTIONALPRIVATE",
    "INSTITUTIONALGOVERNMENT",
)
FIRST_NAMES = (
    "Amrit",
    "Balwinder",
    "Charan",
    "Daljit",
    "Gurpreet",
    "Harjit",
    "Jasleen",
    "Kiran",
    "Manjit",
    "Navdeep",
    "Parveen",
    "Simran",
)
LAST_NAMES = ("Arora", "Bajwa", "Dhillon", "Gill", "Kapoor", "Malhotra", "Sandhu", "Sharma", "Sidhu", "Verma")
STREETS = ("Mall Road", "Lawrence Road", "Court Road", "Grand Trunk Road", "Model Town", "Civil Lines")
LOCALITIES = (
    ("SUN01", "Ajit Nagar"),
    ("SUN02", "Green Avenue"),
    ("SUN03", "Ranjit Avenue"),
    ("SUN04", "Basant Vihar"),
    ("SUN05", "Old City"),
)

STORY_PROPERTY, STORY_DEMAND = "PB-PT-2024-001", "DM-2024-001"


def milliseconds(text: str) -> int:
    """The instant of a date and time in India."""
    return int(datetime.fromisoformat(text).replace(tzinfo=INDIA).timestamp() * 1000)


def first_of_financial_year(year: int) -> int:
    return milliseconds(f"{year}-04-01T00:00:00")


def financial_year_of(instant: int) -> int:
    """The calendar year in which its financial year begins: 2023 for 2023-24."""
    local = datetime.fromtimestamp(instant / 1000, UTC).astimezone(INDIA)
    return local.year if local.month >= 4 else local.year - 1


@dataclass
class TaxSystem:
    """The newest message about each property and demand, and the random numbers that drive the system."""

    chance: random.Random
    properties: dict[str, Message] = field(default_factory=dict)
    demands: dict[str, Message] = field(default_factory=dict)
    untouched: list[str] = field(default_factory=list)
    """Properties that no special case has used, so that each case stays clear of the others."""
    remembered: dict[str, str] = field(default_factory=dict)
    """Properties and demands that a later day returns to, by the name of the case."""

    def between(self, first: int, last: int) -> int:
        return self.chance.randrange(first, last)

    def office_hours(self, day: int) -> int:
        return self.between(
            milliseconds(f"{DATES[day - 1]}T09:30:00"), milliseconds(f"{DATES[day - 1]}T18:00:00")
        )

    def uuid(self) -> str:
        return f"{self.chance.getrandbits(128):032x}"

    def take(self, day: int, count: int, *, owing: bool | None = None, units: int = 0) -> list[str]:
        """Take `count` untouched active properties from the towns that are busy on a day.

        `owing` asks for properties with or without a debt, `units` for a minimum number of units.
        """
        suitable = (
            property_id for property_id in self.untouched if self.suits(property_id, day, owing, units)
        )
        chosen = list(itertools.islice(suitable, count))
        self.untouched = [property_id for property_id in self.untouched if property_id not in chosen]
        return chosen

    def suits(self, property_id: str, day: int, owing: bool | None, units: int) -> bool:
        message, demands = self.properties[property_id], self.demands_of(property_id)
        return (
            message["tenantId"] in BUSY_ON_DAY[day]
            and message["property"]["status"] == "ACTIVE"
            and len(message["property"]["units"]) >= units
            and (owing is None or (bool(demands) and owing == any(map(owed, demands))))
        )

    def demands_of(self, property_id: str) -> list[Message]:
        return [demand for demand in self.demands.values() if demand["demand"]["consumerCode"] == property_id]

    def unpaid_demand_of(self, property_id: str) -> str:
        return next(str(demand["demand"]["id"]) for demand in self.demands_of(property_id) if owed(demand))

    def change_property(self, property_id: str, at: int, **changes: Any) -> Message:
        """The system sends the complete property, with the next version."""
        message = copy.deepcopy(self.properties[property_id])
        message["property"].update(changes)
        message["property"]["version"] = message["property"].get("version", 0) + 1
        message["property"]["auditDetails"].update(
            lastModifiedTime=at, lastModifiedBy=f"user-{self.between(100, 130)}"
        )
        self.properties[property_id] = message
        return message

    def change_demand(self, demand_id: str, at: int, **changes: Any) -> Message:
        """The system sends the complete demand.

        The story's has no version, as in the system's documentation.
        """
        message = copy.deepcopy(self.demands[demand_id])
        message["demand"].update(changes)
        if "version" in message["demand"]:
            message["demand"]["version"] += 1
        message["demand"]["auditDetails"]["lastModifiedTime"] = at
        self.demands[demand_id] = message
        return message

    def pay(self, demand_id: str, at: int, amount: int | None = None) -> Message:
        """Pay an amount in hundredths of a rupee, by default all that is owed.

        It is spread over the details, beginning with the first.
        """
        details = copy.deepcopy(self.demands[demand_id]["demand"]["demandDetails"])
        left = owed(self.demands[demand_id]) if amount is None else amount
        for detail in details:
            open_amount = cents(detail["taxAmount"]) - cents(detail["collectionAmount"])
            part = open_amount if amount is None else max(0, min(open_amount, left))
            detail["collectionAmount"] = spelt_like(
                detail["taxAmount"], cents(detail["collectionAmount"]) + part
            )
            left -= part
        message = self.change_demand(demand_id, at, demandDetails=details)
        message["demand"]["isPaymentCompleted"] = owed(message) == 0
        return message


def cents(amount: int | float | str) -> int:
    return round(float(amount) * 100)


def spelt_like(example: int | float | str, amount: int) -> int | float | str:
    """Some of the system's services write amounts as numbers, some as text."""
    if isinstance(example, str):
        return f"{amount / 100:.2f}"
    return amount // 100 if amount % 100 == 0 else amount / 100


def owed(demand: Message) -> int:
    return sum(
        cents(detail["taxAmount"]) - cents(detail["collectionAmount"])
        for detail in demand["demand"]["demandDetails"]
    )


@dataclass
class Day:
    """The messages of one day, in the order they were sent. Text is sent as it is."""

    property: list[Message | str] = field(default_factory=list)
    demand: list[Message | str] = field(default_factory=list)


# The first day: everything there is


def new_property(system: TaxSystem, property_id: str, tenant_id: str, created: int, modified: int) -> Message:
    chance = system.chance
    code, locality = chance.choice(LOCALITIES)
    usage, ownership = chance.choice(USAGES), chance.choice(OWNERSHIPS)
    floors = chance.choice((0, 1, 1, 1, 1, 2, 2, 3))
    address = {
        "doorNo": str(chance.randrange(1, 400)),
        "street": chance.choice(STREETS),
        "locality": {"code": code, "name": locality},
        "city": TOWNS[tenant_id],
        "pincode": str(chance.randrange(140001, 148999)),
    }
    message = {
        "tenantId": tenant_id,
        "property": {
            "propertyId": property_id,
            "propertyType": chance.choice(("BUILTUP.INDEPENDENTPROPERTY", "BUILTUP.SHAREDPROPERTY"))
            if floors
            else "VACANT",
            "usageCategory": None if chance.random() < 0.005 else usage,
            "ownershipCategory": ownership,
            "status": "ACTIVE" if chance.random() < 0.97 else "INACTIVE",
            "landArea": chance.choice(
                (chance.randrange(50, 900), f"{chance.randrange(50, 900)}.{chance.randrange(1, 9999):04d}")
            ),
            "address": None if chance.random() < 0.01 else address,
            "units": [new_unit(system, property_id, number, usage) for number in range(1, 1 + floors)],
            "owners": [new_owner(system) for _ in range(2 if ownership.endswith("MULTIPLEOWNERS") else 1)],
            "auditDetails": {
                "createdTime": created,
                "lastModifiedTime": modified,
                "lastModifiedBy": f"user-{chance.randrange(100, 130)}",
            },
            "version": 1,
        },
    }
    system.properties[property_id] = message
    return message


def new_unit(system: TaxSystem, property_id: str, number: int, usage: str) -> Message:
    return {
        "unitId": f"{property_id}-U{number}",
        "floorNo": number - 1,
        "usageCategory": usage,
        "occupancyType": system.chance.choice(("SELFOCCUPIED", "RENTED", "UNOCCUPIED")),
        "builtUpArea": system.chance.randrange(30, 400),
    }


def new_owner(system: TaxSystem) -> Message:
    name = f"{system.chance.choice(FIRST_NAMES)} {system.chance.choice(LAST_NAMES)}"
    return {"ownerId": system.uuid(), "name": name, "ownerType": "NONE", "status": "ACTIVE"}


def new_demand(system: TaxSystem, demand_id: str, property_id: str, year: int, at: int) -> Message:
    chance = system.chance
    tax = chance.randrange(500, 20000) * 100 + chance.choice((0, 0, 25, 50))
    details = [new_detail(system, "PT_TAX", tax), new_detail(system, "PT_FIRE_CESS", tax // 2000 * 100)]
    if chance.random() < 0.2:
        details.append(new_detail(system, "PT_TIME_REBATE", -(tax // 1000 * 50)))
    message = {
        "tenantId": system.properties[property_id]["tenantId"],
        "demand": {
            "id": demand_id,
            "consumerCode": property_id,
            "businessService": "PT",
            "status": "ACTIVE",
            "isPaymentCompleted": False,
            "taxPeriodFrom": first_of_financial_year(year),
            "taxPeriodTo": first_of_financial_year(year + 1) - 1,
            "demandDetails": details,
            "auditDetails": {"lastModifiedTime": at},
            "version": 1,
        },
    }
    if chance.random() < 0.3:
        for detail in details:
            detail["taxAmount"], detail["collectionAmount"] = (
                f"{cents(detail['taxAmount']) / 100:.2f}",
                "0.00",
            )
    system.demands[demand_id] = message
    return message


def new_detail(system: TaxSystem, tax_head: str, amount: int) -> Message:
    return {
        "id": system.uuid(),
        "taxHeadMasterCode": tax_head,
        "taxAmount": spelt_like(0, amount),
        "collectionAmount": 0,
    }


def tell_the_story(system: TaxSystem) -> tuple[Message, Message]:
    """The property and demand of the README: 5,500 due.

    3,000 are paid on the second day, the rest on the third.
    """
    created = milliseconds("2024-01-01T15:30:00")
    known = new_property(system, STORY_PROPERTY, "pb.amritsar", created, created)
    known["property"].update(
        propertyType="BUILTUP.INDEPENDENTPROPERTY", usageCategory="RESIDENTIAL", status="ACTIVE", landArea=250
    )
    known["property"].update(
        ownershipCategory="INDIVIDUAL.SINGLEOWNER", owners=[{"ownerId": "OW-2024-001", "name": "Harjit Gill"}]
    )
    known["property"].update(units=[new_unit(system, STORY_PROPERTY, 1, "RESIDENTIAL")])
    bill = {
        "tenantId": "pb.amritsar",
        "demand": {
            "id": STORY_DEMAND,
            "consumerCode": STORY_PROPERTY,
            "isPaymentCompleted": False,
            "taxPeriodFrom": first_of_financial_year(2023),
            "taxPeriodTo": first_of_financial_year(2024) - 1,
            "demandDetails": [
                {"taxHeadMasterCode": "PT_TAX", "taxAmount": 5000, "collectionAmount": 0},
                {"taxHeadMasterCode": "PT_LATE_FEE", "taxAmount": 500, "collectionAmount": 0},
            ],
            "auditDetails": {"lastModifiedTime": 1705000000000},
        },
    }
    system.demands[STORY_DEMAND] = bill
    return known, bill


def first_day(system: TaxSystem) -> Day:
    day = Day()
    known, bill = tell_the_story(system)
    day.property.append(known)
    day.demand.append(bill)
    last_evening = milliseconds("2024-01-11T18:00:00")
    towns = tuple(TOWNS)
    for number in range(1, PROPERTIES - sum(NEW_ON_DAY.values())):
        created = system.between(first_of_financial_year(2019), milliseconds("2024-01-10T00:00:00"))
        if number % 500 == 0:
            created = (
                first_of_financial_year(2023) + 3_600_000
            )  # an hour into the year in India, still the old year in UTC
        property_id = f"PB-PT-{financial_year_of(created)}-{number:04d}"
        day.property.append(
            new_property(
                system, property_id, towns[number % 4], created, system.between(created, last_evening)
            )
        )
        system.untouched.append(property_id)
        day.demand.extend(demands_until_now(system, property_id, number, created, last_evening))
    system.chance.shuffle(system.untouched)
    keep_one_back(system, day)
    day.property.extend(older_versions(system, day.property[1:60]))
    return day


def demands_until_now(
    system: TaxSystem, property_id: str, number: int, created: int, last_evening: int
) -> Iterator[Message]:
    """A bill for most years, and what became of it: paid in full, in part, or not at all."""
    for year, likely in ((2021, 0.2), (2022, 0.3), (2023, 0.85)):
        if year < financial_year_of(created) or system.chance.random() > likely:
            continue
        demand_id = f"DM-{year}-{number:05d}"
        billed = max(created, first_of_financial_year(year)) + 86_400_000
        bill = new_demand(system, demand_id, property_id, year, billed)
        paid = system.between(billed, max(billed + 1, last_evening))
        outcome = system.chance.random()
        if outcome < 0.72:
            yield from (
                (bill, system.pay(demand_id, paid)) if outcome < 0.04 else (system.pay(demand_id, paid),)
            )
        elif outcome < 0.8:
            yield system.pay(demand_id, paid, owed(bill) // 3)
        else:
            yield bill


def older_versions(system: TaxSystem, messages: list[Message | str]) -> Iterator[Message]:
    """The previous version of some properties. It comes in the same file, in no particular order."""
    for message in messages:
        assert isinstance(message, dict)
        if system.chance.random() < 0.3:
            older = copy.deepcopy(message)
            message["property"]["version"] = 2
            audit = older["property"]["auditDetails"]
            older["property"].update(usageCategory="RESIDENTIAL", landArea=100)
            audit["lastModifiedTime"] = (audit["createdTime"] + audit["lastModifiedTime"]) // 2
            yield older


def keep_one_back(system: TaxSystem, day: Day) -> None:
    """A property whose demands come on the first day and whose own message comes on the second."""
    late = system.take(2, 1, owing=True)[0]
    day.property.remove(system.properties[late])
    system.remembered["late property"] = late


# The second and the third day: what changes, and what goes wrong


def second_day(system: TaxSystem, before: Day) -> Day:
    day = Day()
    day.demand.append(system.pay(STORY_DEMAND, 1705100000000, 300_000))
    day.property.append(system.change_property(STORY_PROPERTY, 1705123456789, usageCategory="COMMERCIAL"))
    day.property.append(system.properties[system.remembered["late property"]])
    ordinary_changes(system, day, 2, paid=22, paid_in_part=10, corrected=5)
    tied_messages(system, day, 2)
    a_removed_unit(system, day, 2)
    no_word_about_units(system, day, 2)
    a_reassessment(system, day, 2)
    a_payment_on_the_wrong_demand(system, day, 2)
    a_missing_key(system, day, 2)
    day.property.extend(
        system.chance.sample(day.property, 2) + before.property[100:102]
    )  # sent twice, at once and a day later
    day.demand.extend(system.chance.sample(day.demand, 3) + before.demand[200:202])
    day.demand.append(a_broken_line(day))
    return day


def third_day(system: TaxSystem, before: Day) -> Day:
    day = Day()
    day.demand.append(system.pay(STORY_DEMAND, 1705200000000))
    ordinary_changes(system, day, 3, paid=18, paid_in_part=8, corrected=4)
    an_inactive_property(system, day, 3)
    a_correction_of_the_wrong_payment(system, day, 3)
    late_messages(system, day, 3)
    no_units_left(system, day, 3)
    a_sale(system, day, 3)
    a_cancelled_demand(system, day, 3)
    an_amount_that_is_none(system, day, 3)
    day.property.extend(system.chance.sample(day.property, 2))
    return day


def ordinary_changes(
    system: TaxSystem, day: Day, number: int, *, paid: int, paid_in_part: int, corrected: int
) -> None:
    for property_id in system.take(number, paid, owing=True):
        day.demand.append(system.pay(system.unpaid_demand_of(property_id), system.office_hours(number)))
    for property_id in system.take(number, paid_in_part, owing=True):
        demand_id = system.unpaid_demand_of(property_id)
        day.demand.append(
            system.pay(demand_id, system.office_hours(number), owed(system.demands[demand_id]) // 2)
        )
    for property_id in system.take(number, corrected):
        day.property.append(
            system.change_property(
                property_id, system.office_hours(number), landArea=f"{system.between(50, 900)}.5"
            )
        )
    for new in range(1, 1 + NEW_ON_DAY[number]):
        property_id, now = f"PB-PT-2023-9{number}{new:02d}", system.office_hours(number)
        day.property.append(
            new_property(system, property_id, BUSY_ON_DAY[number][new % len(BUSY_ON_DAY[number])], now, now)
        )
        day.demand.append(new_demand(system, f"DM-2023-9{number}{new:03d}", property_id, 2023, now))


def tied_messages(system: TaxSystem, day: Day, number: int) -> None:
    """Two changes in one millisecond. The version says which is newer, and the newer one is sent first."""
    tied, paying = system.take(number, 1)[0], system.take(number, 1, owing=True)[0]
    at = system.office_hours(number)
    older = system.change_property(tied, at, usageCategory="MIXED")
    day.property.extend((system.change_property(tied, at, usageCategory="INDUSTRIAL"), older))
    demand_id = system.unpaid_demand_of(paying)
    part = system.pay(demand_id, at, owed(system.demands[demand_id]) // 4)
    day.demand.extend((system.pay(demand_id, at), part))


def a_removed_unit(system: TaxSystem, day: Day, number: int) -> None:
    """One of its units was pulled down: the property's next message no longer lists it."""
    property_id = system.take(number, 1, units=2)[0]
    units = system.properties[property_id]["property"]["units"]
    day.property.append(system.change_property(property_id, system.office_hours(number), units=units[1:]))


def no_word_about_units(system: TaxSystem, day: Day, number: int) -> None:
    """A message without a list of units says nothing about them: they stay."""
    property_id = system.take(number, 1, units=2)[0]
    message = copy.deepcopy(system.change_property(property_id, system.office_hours(number), landArea=77))
    del message["property"]["units"]
    day.property.append(message)


def no_units_left(system: TaxSystem, day: Day, number: int) -> None:
    """An empty list says that there are none."""
    property_id = system.take(number, 1, units=2)[0]
    day.property.append(
        system.change_property(property_id, system.office_hours(number), units=[], propertyType="VACANT")
    )


def a_reassessment(system: TaxSystem, day: Day, number: int) -> None:
    """A second detail under the same tax head, with an id of its own: both count."""
    property_id = system.take(number, 1, owing=True)[0]
    demand_id = system.unpaid_demand_of(property_id)
    details = [*system.demands[demand_id]["demand"]["demandDetails"], new_detail(system, "PT_TAX", 125_000)]
    day.demand.append(system.change_demand(demand_id, system.office_hours(number), demandDetails=details))


def a_payment_on_the_wrong_demand(system: TaxSystem, day: Day, number: int) -> None:
    property_id = system.take(number, 1, owing=True)[0]
    demand_id = system.unpaid_demand_of(property_id)
    system.remembered["wrong payment"] = demand_id
    system.remembered["before the wrong payment"] = json.dumps(
        system.demands[demand_id]["demand"]["demandDetails"]
    )
    day.demand.append(system.pay(demand_id, system.office_hours(number)))


def a_correction_of_the_wrong_payment(system: TaxSystem, day: Day, number: int) -> None:
    """What was booked wrongly is not edited: a new message says how it is."""
    details = json.loads(system.remembered["before the wrong payment"])
    at = system.office_hours(number)
    day.demand.append(
        system.change_demand(
            system.remembered["wrong payment"], at, demandDetails=details, isPaymentCompleted=False
        )
    )


def a_missing_key(system: TaxSystem, day: Day, number: int) -> None:
    """Nobody can say whose property this is."""
    message = copy.deepcopy(system.properties[system.take(number, 1)[0]])
    del message["tenantId"]
    message["property"]["auditDetails"]["lastModifiedTime"] = system.office_hours(number)
    day.property.append(message)


def a_broken_line(day: Day) -> str:
    """The connection broke in the middle of a message."""
    whole = json.dumps(day.demand[1])
    return whole[: len(whole) // 2]


def an_inactive_property(system: TaxSystem, day: Day, number: int) -> None:
    """Its owners still owe, but it is no longer taxed, so it leaves the defaulters. Nothing is deleted."""
    for property_id in system.take(number, 2, owing=True):
        day.property.append(
            system.change_property(property_id, system.office_hours(number), status="INACTIVE")
        )


def late_messages(system: TaxSystem, day: Day, number: int) -> None:
    """Late messages do not win, but they change a month's collections.

    Part of the money was paid earlier than was known.
    """
    for property_id in system.take(number, 3, owing=False):
        demand_id = system.demands_of(property_id)[0]["demand"]["id"]
        now = system.demands[demand_id]
        then = copy.deepcopy(now)
        then["demand"].update(isPaymentCompleted=False, version=0)
        then["demand"]["auditDetails"]["lastModifiedTime"] = max(
            then["demand"]["taxPeriodFrom"] + 86_400_000,
            then["demand"]["auditDetails"]["lastModifiedTime"] - 45 * 86_400_000,
        )
        for detail in then["demand"]["demandDetails"]:
            detail["collectionAmount"] = spelt_like(detail["taxAmount"], cents(detail["taxAmount"]) // 2)
        day.demand.append(then)
    older = copy.deepcopy(system.properties[system.take(number, 1)[0]])
    older["property"].update(usageCategory="MIXED", version=0)
    older["property"]["auditDetails"]["lastModifiedTime"] -= 86_400_000
    day.property.append(older)


def a_sale(system: TaxSystem, day: Day, number: int) -> None:
    property_id = system.take(number, 1, owing=True)[0]
    sellers = [
        {**owner, "status": "INACTIVE"} for owner in system.properties[property_id]["property"]["owners"]
    ]
    day.property.append(
        system.change_property(property_id, system.office_hours(number), owners=[*sellers, new_owner(system)])
    )


def a_cancelled_demand(system: TaxSystem, day: Day, number: int) -> None:
    property_id = system.take(number, 1, owing=True)[0]
    day.demand.append(
        system.change_demand(
            system.unpaid_demand_of(property_id), system.office_hours(number), status="CANCELLED"
        )
    )


def an_amount_that_is_none(system: TaxSystem, day: Day, number: int) -> None:
    """The letter O for a zero. This detail is refused; its demand and the other details are not."""
    property_id = system.take(number, 1, owing=True)[0]
    demand_id = system.unpaid_demand_of(property_id)
    message = copy.deepcopy(system.change_demand(demand_id, system.office_hours(number)))
    message["demand"]["demandDetails"][0]["taxAmount"] = "15O0.00"
    day.demand.append(message)


def make_days() -> tuple[Day, Day, Day]:
    system = TaxSystem(chance=random.Random(SEED))
    first = first_day(system)
    second = second_day(system, first)
    third = third_day(system, second)
    for day in (first, second, third):
        system.chance.shuffle(day.property)
        system.chance.shuffle(day.demand)
    return first, second, third


def write(path: Path, messages: list[Message | str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (message if isinstance(message, str) else json.dumps(message) for message in messages)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    print(
        f"wrote {len(messages):,} messages to "
        f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}"
    )


def main(arguments: list[str]) -> int:
    if arguments not in (["1"], ["2"], ["3"]):
        print("usage: python generate.py DAY, where DAY is 1, 2 or 3", file=sys.stderr)
        return 2
    number = int(arguments[0])
    data, days = Path(__file__).resolve().parent / "data", make_days()
    write(data / "property" / f"{DATES[number - 1]}.jsonl", days[number - 1].property)
    write(data / "demand" / f"{DATES[number - 1]}.jsonl", days[number - 1].demand)
    if number == 3:  # someone sends yesterday's file again, under a new name
        write(data / "demand" / f"{DATES[1]}-again.jsonl", days[1].demand)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
