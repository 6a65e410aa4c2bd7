"""Schedule of the rounds: which fault hits which process when. Equal seeds give equal schedules."""

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
MAX_START_SECONDS = 2.0  # after the launch; most trials run in this time
TWO_FAULT_SHARE = 0.25  # share of rounds with two faults

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """Fault of a round.

    Attributes:
        kind: kill, freeze or fill.
        target: the process; for fill "data", or "wal" if PostgreSQL has to begin a new WAL segment meanwhile.
        at: seconds after the launch; negative if it begins before the launch.
        seconds: until it is undone; 0 for a kill, which the supervisor undoes.
    """

    kind: str
    target: str
    at: float
    seconds: float = 0.0

    def __str__(self) -> str:
        duration = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.kind} {self.target} at {self.at:+.1f} s{duration}"


@dataclass(frozen=True, slots=True)
class Round:
    """Plan of one round.

    Attributes:
        number: counted from 1.
        poison: name of the poisoned answer that one run gets; "" for none.
        trials: trials per run.
        cap: request budget of one run.
        until: whether one run uses sequential stopping.
    """

    number: int
    seed: int
    faults: tuple[Fault, ...]
    poison: str
    trials: int
    cap: int
    until: bool

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return asdict(self)


def plan_round(seed: int, number: int, *, can_fill: bool = True) -> Round:
    """Return the plan of a round.

    Args:
        seed: seed of the schedule.
        number: number of the round, counted from 1.
        can_fill: whether the disk can be filled on this machine; otherwise no fault does it.
    """
    random = Random(f"{seed} {number}")
    kinds = [kind for kind in _list_fault_kinds() if can_fill or kind[0] != FILL]
    hit = [_get_shuffled(kinds, f"{seed} first", number - 1)]
    second = _get_shuffled(kinds, f"{seed} second", number - 1)
    if random.random() < TWO_FAULT_SHARE and second[1] != hit[0][1]:
        hit.append(second)
    return Round(
        number=number,
        seed=seed,
        faults=tuple(sorted((_build_fault(random, *each) for each in hit), key=lambda fault: fault.at)),
        poison=_get_shuffled(tuple(POISON_BY_NAME), f"{seed} poison", number // 2 - 1) if number % 2 == 0 else "",
        trials=random.randint(4, 10),
        cap=random.choice((7, 12, 20, 1000)),
        until=random.random() < 0.3,
    )


def _list_fault_kinds() -> list[tuple[str, str]]:
    """Return each kind of fault and target once."""
    kills = [(KILL, process) for process in PROCESSES]
    freezes = [(FREEZE, process) for process in (*PROCESSES, DATABASE, SUPERVISOR)]
    return [*kills, *freezes, (FILL, "data"), (FILL, "wal")]


def _get_shuffled(items: Sequence[T], seed: str, place: int) -> T:
    """Return the item at `place` of an endless sequence that repeats all items, each time shuffled anew.

    So a process is hit again only after the others, and its restart pauses stay short.
    """
    shuffled = list(items)
    Random(f"{seed} {place // len(items)}").shuffle(shuffled)
    return shuffled[place % len(items)]


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
