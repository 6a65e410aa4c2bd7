"""The schedule of chaos rounds: which fault hits which process when. Equal seeds give equal schedules."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any, TypeVar

from benchmarks.chaos.poison import POISON_BY_NAME

KILL, FREEZE, FILL = "kill", "freeze", "fill"
BROKER, BACKEND, DATABASE, SUPERVISOR = "valkey", "backend", "database", "supervisor"
PROCESSES = ("postgres", BACKEND, BROKER, "web", "scheduler", "worker-1", "worker-2", "simulated")
# The database is needed to launch; any other process can be hit before a launch begins.
BEFORE_LAUNCH = (BROKER, "web", "scheduler", "worker-1", "worker-2", "simulated")

SHORT_SECONDS = (0.2, 1.5)  # of a freeze: the lease of 3 s holds
LONG_SECONDS = (3.5, 5.0)  # of a freeze: the lease is lost
FULL_SECONDS = (0.5, 2.0)  # how long the disk stays full
MAX_START_SECONDS = 2.0  # after the launch, in which most trials are under way
TWO_FAULT_SHARE = 0.25  # of the rounds have two faults

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a round.

    Attributes:
        kind: kill, freeze or fill.
        target: the process; for fill what is full: "data", or "wal" when PostgreSQL has to begin a new WAL segment.
        at: seconds after the launch; negative when it begins before the launch.
        seconds: until it is undone; 0 for a kill, which the supervisor undoes.
    """

    kind: str
    target: str
    at: float
    seconds: float = 0.0

    def __str__(self) -> str:
        lasting = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.kind} {self.target} at {self.at:+.1f} s{lasting}"


@dataclass(frozen=True, slots=True)
class Round:
    """What one round does. `poison` names the answer that one run gets; `cap` is the request limit of another."""

    number: int
    seed: int
    faults: tuple[Fault, ...]
    poison: str
    trials: int
    cap: int
    until: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def plan_round(seed: int, number: int, *, can_fill: bool = True) -> Round:
    """Return round `number`, counted from 1.

    Args:
        can_fill: whether the disk can be filled on this machine; such faults are left out otherwise.
    """
    random = Random(f"{seed} {number}")
    kinds = [kind for kind in _list_fault_kinds() if can_fill or kind[0] != FILL]
    hit = [_deal(kinds, f"{seed} first", number - 1)]
    second = _deal(kinds, f"{seed} second", number - 1)
    if random.random() < TWO_FAULT_SHARE and second[1] != hit[0][1]:
        hit.append(second)
    return Round(
        number=number,
        seed=seed,
        faults=tuple(sorted((_build_fault(random, *each) for each in hit), key=lambda fault: fault.at)),
        poison=_deal(tuple(POISON_BY_NAME), f"{seed} poison", number // 2 - 1) if number % 2 == 0 else "",
        trials=random.randint(4, 10),
        cap=random.choice((7, 12, 20, 1000)),
        until=random.random() < 0.3,
    )


def _list_fault_kinds() -> list[tuple[str, str]]:
    """Each kind of fault once: a process is hit again only after the others, so that restart pauses stay short."""
    kills = [(KILL, process) for process in PROCESSES]
    freezes = [(FREEZE, process) for process in (*PROCESSES, DATABASE, SUPERVISOR)]
    return [*kills, *freezes, (FILL, "data"), (FILL, "wal")]


def _deal(deck: Sequence[T], seed: str, place: int) -> T:
    """Return the card at `place` of decks that are shuffled and dealt one after the other."""
    shuffled = list(deck)
    Random(f"{seed} {place // len(deck)}").shuffle(shuffled)
    return shuffled[place % len(deck)]


def _build_fault(random: Random, kind: str, target: str) -> Fault:
    at = random.uniform(0, MAX_START_SECONDS)
    if target in BEFORE_LAUNCH and random.random() < 0.2:
        at = -0.2
    seconds = 0.0
    if kind == FREEZE:
        seconds = random.uniform(*random.choice((SHORT_SECONDS, LONG_SECONDS)))
    if kind == FILL:
        seconds = random.uniform(*FULL_SECONDS)
    return Fault(kind, target, round(at, 2), round(seconds, 2))
