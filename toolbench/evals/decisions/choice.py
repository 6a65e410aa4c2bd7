"""Which configuration a rule chooses: the Pareto front, the leader, and whether the intervals allow to call it one."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scipy.special import ndtri

from toolbench.evals.decisions.requirements import (
    BY_HAND,
    CHEAPEST,
    FASTEST,
    OPEN,
    PRICES,
    REFUSED,
    RELIABLE,
    Measured,
    Missing,
    Rule,
    Span,
    Standing,
    stand,
    straight_passes,
)
from toolbench.evals.statistics import Z
from toolbench.evals.statistics.differences import ALPHA
from toolbench.evals.statistics.rounding import written

NONE, ALONE, CLEAR, UNCLEAR, CONFIRM = "none", "alone", "clear", "unclear", "confirm"
_ORDER = ("qualified", BY_HAND, OPEN, REFUSED)


@dataclass(frozen=True, slots=True)
class More:
    """The trials that would tell: so many of each scenario at these places, for each of `standings`."""

    standings: tuple[Standing, ...]
    lacking: Missing

    @property
    def each(self) -> int:
        return self.lacking.each

    @property
    def total(self) -> int:
        return self.lacking.total

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Return their names, as far as they are known."""
        names = self.standings[0].measured.scenarios
        return tuple(names[place] for place in self.lacking.places) if names else ()


@dataclass(frozen=True, slots=True)
class Decision:
    """`verdict`: none qualifies; alone, only the leader does; clear, its interval lies apart from every rival's;
    unclear; confirm, the leader's trials may not decide (added by hand, or stopped when decided). `front` holds the
    keys of those that qualify, or would on fresh trials where none does, and that no other of them beats in everything.
    `chosen_among`: how many were looked at; a winner among several has to be confirmed on fresh trials, as has one
    with trials that were planned after looking. `more`: the trials that would tell, None where none would."""

    rule: Rule
    standings: tuple[Standing, ...]
    front: frozenset[str]
    verdict: str
    leader: Standing | None
    sentence: str
    chosen_among: int
    more: More | None = None

    @property
    def to_confirm(self) -> bool:
        leader = self.leader
        return leader is not None and (self.chosen_among > 1 or leader.state == BY_HAND or leader.measured.planned)


def decide(measured: Iterable[Measured], rule: Rule) -> Decision:
    """Qualified ones first, the best of what is wanted first; of open ones those first that more trials would lift."""
    standings = tuple(sorted((stand(one, rule) for one in measured), key=lambda one: _place(one, rule)))
    able = [one for one in standings if one.state == "qualified"]
    by_hand = [one for one in standings if one.state == BY_HAND]
    if not able and by_hand:
        sentence = f"{by_hand[0].measured.label} would qualify, but not by such trials: only fresh ones may say so."
        return Decision(rule, standings, pareto(by_hand), CONFIRM, by_hand[0], sentence, len(standings))
    leader = able[0] if able else None
    verdict, sentence, more = _verdict(able, standings, rule)
    return Decision(rule, standings, pareto(able), verdict, leader, sentence, len(standings), more)


def wanted(standing: Standing, rule: Rule) -> Span | None:
    """The figure that is to be least: p95, the cost of a delivered success, or the share that was not delivered. None
    where it, or a bound of it, is not known."""
    p95 = standing.p95
    if rule.want == CHEAPEST:
        return standing.measured.cost
    if rule.want == RELIABLE:
        return Span(1 - standing.measured.delivered_pool.share, 1 - standing.high, 1 - standing.low)
    return Span(p95.value, p95.low, p95.high) if p95 and p95.low is not None and p95.high is not None else None


def front(points: Mapping[str, tuple[float, ...]]) -> frozenset[str]:
    """The keys of points that no other beats: as small in every coordinate and smaller in one."""

    def beaten(point: tuple[float, ...]) -> bool:
        return any(other != point and all(map(float.__le__, other, point)) for other in points.values())

    return frozenset(key for key, point in points.items() if not beaten(point))


def pareto(standings: Iterable[Standing]) -> frozenset[str]:
    """Over the share delivered, p95, and cost where everyone's is known. Whoever has no p95 takes no part."""
    known = {one.measured.key: (one, one.p95) for one in standings if one.p95 and one.measured.tried}
    priced = all(one.measured.cost for one, _ in known.values())
    points = {
        key: (-one.measured.delivered_pool.share, float(p95.value), _dollars(one.measured) if priced else 0.0)
        for key, (one, p95) in known.items()
        if p95
    }
    return front(points)


def ratio(costs: float, squares: float, *, with_pass: float, passed: int, tried: int) -> Span | None:
    """Dollars per pass with its interval, from the sums of costs, of their squares and of the costs of passes: the
    delta method on the logarithm. None when nothing passed or nothing was paid."""
    if not passed or costs <= 0 or not tried:
        return None
    value = costs / passed
    spread = squares - 2 * value * with_pass + value**2 * passed
    error = math.sqrt(max(spread, 0.0)) / costs
    return Span(value, value * math.exp(-Z * error), value * math.exp(Z * error))


def more_to_part(ahead: Span, behind: Span, trials: int) -> int | None:
    """How many more trials of each would part two intervals at the figures seen, since their widths shrink with the
    root of the number; None for equal figures."""
    gap = behind.value - ahead.value
    if gap <= 0:
        return None
    reach = (ahead.high - ahead.value) + (behind.value - behind.low)
    return max(0, math.ceil(trials * (reach / gap) ** 2) - trials)


def cost_difference(first: Span, second: Span, *, comparisons: int = 1) -> Span:
    """Return the second less the first with the interval of two independent figures, simultaneous among so many."""

    def spread(one: Span) -> float:
        return one.value * math.log(one.high / one.low) / 2 if one.low > 0 else one.high - one.value

    value, reach = second.value - first.value, math.hypot(spread(first), spread(second))
    reach *= float(ndtri(1 - ALPHA / comparisons / 2)) / Z
    return Span(value, value - reach, value + reach)


def _place(standing: Standing, rule: Rule) -> tuple[int, bool, float, float]:
    hopeless = standing.state == OPEN and not _would_lift(standing, rule)
    return _ORDER.index(standing.state), hopeless, _value(standing, rule), -standing.low


def _would_lift(standing: Standing, rule: Rule) -> bool:
    """Return whether more trials, at the rate and the times seen, would let an open one qualify."""
    limit, p95 = rule.within_ms, standing.p95
    in_time = limit is None or p95 is None or p95.value <= limit
    return standing.state == OPEN and standing.lacking is not None and in_time


def _value(standing: Standing, rule: Rule) -> float:
    """The figure that is to be least, also where a bound of it is open; infinite where it is not known."""
    if not standing.measured.tried:
        return math.inf
    if rule.want == FASTEST:
        return standing.p95.value if standing.p95 else math.inf
    figure = wanted(standing, rule)
    return figure.value if figure else math.inf


def _dollars(measured: Measured) -> float:
    return measured.cost.value if measured.cost else 0.0


def _verdict(able: list[Standing], standings: tuple[Standing, ...], rule: Rule) -> tuple[str, str, More | None]:
    if not able:
        return NONE, *_nobody(standings, rule)
    leader, name = able[0], able[0].measured.label
    if len(able) == 1:
        told, more = _might_be_better(leader, standings, rule)
        return ALONE, f"Only {name} qualifies.{told}", more
    best = wanted(leader, rule)
    near = [(one, other) for one in able[1:] if (other := wanted(one, rule)) and best and other.low <= best.high]
    if not near or not best:
        sentence = f"{name} is {rule.goal} of {len(able)} that qualify, and its interval lies apart from theirs."
        return CLEAR, sentence, None
    rival, other = near[0]
    return UNCLEAR, *_overlap((leader, best), (rival, other))


def _overlap(leader: tuple[Standing, Span], rival: tuple[Standing, Span]) -> tuple[str, More | None]:
    (ahead, best), (behind, other) = leader, rival
    trials = min(one.measured.answered for one in (ahead, behind))
    needed = more_to_part(best, other, trials)
    scenarios = len(ahead.measured.delivery_parts)
    each = math.ceil(needed / scenarios) if needed else 0
    more = More((ahead, behind), Missing(tuple(range(scenarios)), each)) if each else None
    tell = f"{more.total:,} more trials of each would tell" if more else "their figures are equal: more trials may not"
    sentence = (
        f"No clear winner: {ahead.measured.label} is ahead, but its interval overlaps with that of "
        f"{behind.measured.label}; {tell}."
    )
    return sentence, more


def _nobody(standings: tuple[Standing, ...], rule: Rule) -> tuple[str, More | None]:
    """The best candidate for what is wanted, what it lacks, and the trials that would tell: `standings` begin with
    those that are open, the best first, and of these with the ones that more trials would lift."""
    begun = "No clear winner: no configuration qualifies."
    tried = [one for one in standings if one.measured.tried]
    if not tried:
        goal = written(rule.success)
        return f"{begun} {straight_passes(rule.target)} straight passes are needed for {goal} %.", None
    closest = tried[0]
    if rule.want == CHEAPEST and not any(one.measured.cost for one in tried):
        return f"{begun} {_no_price(tried)}", None
    lacks = " ".join(reason.sentence for reason in closest.reasons)
    if not _would_lift(closest, rule):
        who = "it" if len(tried) == 1 else f"any of the {len(tried)} that were tried"
        lacks = f"{lacks} More trials at the rates and times seen would not lift {who}."
    return f"{begun} {closest.measured.label} comes closest to being the {rule.goal}. {lacks}", _more(closest)


def _no_price(tried: list[Standing]) -> str:
    who = "the one" if len(tried) == 1 else f"any of the {len(tried)}"
    return (
        f"No price is known of {who} that was measured, so none can be called cheapest. A price that its provider does "
        f"not name can be added to {PRICES}; or ask for the fastest or the most reliable."
    )


def _more(standing: Standing) -> More | None:
    lacking = standing.lacking if standing.state == OPEN else None
    return More((standing,), lacking) if lacking and lacking.each else None


def _might_be_better(leader: Standing, standings: tuple[Standing, ...], rule: Rule) -> tuple[str, More | None]:
    undecided = [one for one in standings if one.state == OPEN]
    better = [one for one in undecided if _value(one, rule) < _value(leader, rule)]
    if not better:
        return "", None
    word = {FASTEST: "faster", CHEAPEST: "cheaper"}.get(rule.want, "more reliable")
    lifted = _would_lift(better[0], rule)
    more = _more(better[0]) if lifted else None
    told = "; at the rate and the times seen more trials would not lift it"
    if lifted:
        told = f": {more.total:,} more trials would tell" if more else ""
    return f" {better[0].measured.label} would be {word} and is not decided yet{told}.", more
