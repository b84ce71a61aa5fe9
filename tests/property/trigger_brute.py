"""What a trigger must record, by the plainest loops: it remembers the state of every key. Nothing here is
taken from the fold that is judged."""

from dataclasses import dataclass, field
from random import Random

Row = dict[str, int | None]


@dataclass(frozen=True, slots=True)
class Limits:
    """Fires from `fire` on, clears below `clear`. Without `clear`, as soon as it does not fire."""

    fire: int
    clear: int | None

    def fires(self, row: Row | None) -> bool:
        return row is not None and row["q"] is not None and row["q"] >= self.fire

    def clears(self, row: Row) -> bool:
        return self.clear is None or (row["q"] is not None and row["q"] < self.clear)


@dataclass(frozen=True, slots=True)
class Commit:
    """The rows after it, with those that it changed in the order of their keys."""

    version: int
    changed: dict[str, Row | None]
    timestamp_by_key: dict[str, int]
    told: bool
    reset: bool


@dataclass(frozen=True, slots=True)
class Read:
    """The trigger reads what it has not read yet."""


@dataclass(frozen=True, slots=True)
class Edit:
    """The trigger gets other conditions."""

    limits: Limits


@dataclass(frozen=True, slots=True)
class Compare:
    """A backfill: what was recorded last is compared with the rows as they are, and nothing is folded."""


@dataclass(frozen=True, slots=True)
class Lose:
    """The catalog is lost. What was read without a commit is read again, which changes nothing."""


Step = Commit | Read | Edit | Compare | Lose
Noted = tuple[str, str, int, int, int, int, int, bool]
"""event type, key, source timestamp, n, version, position, revision, quiet"""


def draw_limits(random: Random) -> Limits:
    fire = random.randint(3, 7)
    return Limits(fire, random.choice([None, fire, fire - 2]))


def draw_schedule(random: Random) -> list[Step]:
    """Few keys, values and timestamps, so that everything meets everything."""
    steps: list[Step] = []
    rows: dict[str, Row] = {}
    told = True
    for version in range(1, random.randint(4, 24)):
        told = told if random.random() < 0.8 else not told
        changed: dict[str, Row | None] = {}
        for key in sorted(random.sample("abcd", random.randint(1, 3))):
            row: Row = {"q": random.choice([None, *range(1, 9)])}
            if key in rows and random.random() < 0.25:
                changed[key] = None
                del rows[key]
            elif rows.get(key) != row:
                changed[key] = rows[key] = row
        timestamps = {key: random.randint(1, 3) for key in changed}
        steps.append(Commit(version, changed, timestamps, told, random.random() < 0.05))
        if random.random() < 0.1:
            steps.append(Edit(draw_limits(random)))
        if random.random() < 0.1:
            steps.append(Compare())
        if random.random() < 0.5:
            steps.append(Read())
        if random.random() < 0.1:
            steps += [Lose(), Read()]
    return [*steps, Read()]


@dataclass(slots=True)
class Brute:
    limits: Limits
    rows: dict[str, Row] = field(default_factory=dict)
    """As of the last change that was read."""
    on: set[str] = field(default_factory=set)
    noted: list[Noted] = field(default_factory=list)
    revision: int = 1
    unread: list[Commit] = field(default_factory=list)
    timestamp_by_key: dict[str, int] = field(default_factory=dict)
    version: int = 0

    def play(self, steps: list[Step]) -> list[Noted]:
        for step in steps:
            match step:
                case Commit():
                    self.unread.append(step)
                case Edit(limits=limits):
                    self.limits = limits
                    self.take_as_existing()
                case Read():
                    for commit in self.unread:
                        self.read(commit)
                    self.unread = []
                case Compare():
                    self.compare()
                case Lose():
                    pass
        return self.noted

    def take_as_existing(self) -> None:
        self.revision += 1
        self.on = {key for key, row in self.rows.items() if self.limits.fires(row)}

    def read(self, commit: Commit) -> None:
        if commit.reset:
            self.apply(commit)
            self.take_as_existing()
            return
        for position, (key, row) in enumerate(sorted(commit.changed.items())):
            before = key in self.on
            if row is None:
                after = False
            elif before:
                after = self.limits.fires(row) or not self.limits.clears(row)
            else:
                after = self.limits.fires(row)
            told_of = any(note[1] == key and note[6] == self.revision for note in self.noted)
            if before != after:
                self.note(commit, position, key, on=after, quiet=not commit.told)
            elif after and not self.limits.fires(row) and not told_of:
                self.note(commit, position, key, on=True, quiet=True)
            self.on = self.on | {key} if after else self.on - {key}
        self.apply(commit)

    def compare(self) -> None:
        if any(commit.reset for commit in self.unread):
            self.revision += 1
        for commit in self.unread:
            self.apply(commit)
        self.unread = []
        last = {note[1]: note[0] for note in self.noted}
        noted_now = {note[1] for note in self.noted if note[6] == self.revision}
        position = max((note[5] + 1 for note in self.noted if note[4] == self.version), default=0)
        self.on = set()
        for key in sorted({*self.rows, *last}):
            row, before = self.rows.get(key), last.get(key) == "MATCH"
            fires = self.limits.fires(row)
            after = row is not None and (fires or (before and not self.limits.clears(row)))
            self.on |= {key} if after else set()
            if before != after or (after and not fires and key not in noted_now):
                self.write(self.version, position, key, on=after, quiet=before == after)
                position += 1

    def note(self, commit: Commit, position: int, key: str, *, on: bool, quiet: bool) -> None:
        self.timestamp_by_key[key] = commit.timestamp_by_key[key]
        self.write(commit.version, position, key, on=on, quiet=quiet)

    def write(self, version: int, position: int, key: str, *, on: bool, quiet: bool) -> None:
        timestamp = self.timestamp_by_key[key]
        n = 1 + sum(note[1:3] == (key, timestamp) for note in self.noted)
        word = "MATCH" if on else "UNMATCH"
        self.noted.append((word, key, timestamp, n, version, position, self.revision, quiet))

    def apply(self, commit: Commit) -> None:
        self.timestamp_by_key |= commit.timestamp_by_key
        self.version = commit.version
        for key, row in commit.changed.items():
            if row is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row
