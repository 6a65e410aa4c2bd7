"""The query of the compare page: the sides, each chosen by any of the axes. The first side is the baseline.

Unreadable values are ignored and named; they never raise an error.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import date
from urllib.parse import parse_qsl, urlencode

from toolbench.lab.metrics.result_filter import DATE_NAMES, NO_FILTER, ResultFilter
from toolbench.lab.query_params import QueryParams, clean_text, parse_whole_number
from toolbench.lab.results.trial_list.filter import STREAMED, WHOLE

AXES = {
    "run": "Run", "config": "Configuration", "provider": "Provider", "model": "Model", "canonical": "Same weights",
    "profile": "Profile", "strategy": "Strategy", "method": "Method", "examples": "Examples", "stream": "Answers",
    "prompt": "Prompt version", "upstream": "Upstream", "day": "Day", "published": "Published row",
}  # fmt: skip
SIDES = ("a", "b")  # the baseline and the side of a comparison of two
SIDE_LETTERS = "abcdefghijkl"  # prefixes of all sides in the URL
MAX_SIDES = len(SIDE_LETTERS)
SIDE_AXES = ("model", "strategy", "profile", "method", "provider")  # that a scope can be split by, the first first
SUCCESS_METRICS = {
    "given": "Answered success",
    "delivered": "End-to-end success",
    "first": "First-attempt success",
}
PARAMETER_NAMES = (
    *(f"{side}{axis}" for side in ("", *(f"{letter}_" for letter in SIDE_LETTERS)) for axis in AXES),
    *("metric", "group", "kind", "how", "points", "demo", "scenario", *DATE_NAMES, "upto"),
)  # of programs: those of the page without what only changes its view
INSTANCE_KIND_CHOICES = ("", "parity", "drawn")
PAIRING_CHOICES = ("", "stratified")
DEFAULT_POINTS = 7
RUN_AXES = ("run", "config")
MAX_VALUE_CHARS = 1_000  # characters of a value; cut, a list of runs would end in another run


@dataclass(frozen=True, slots=True)
class CompareQuery:
    """The sides to compare and how to compare them.

    Attributes:
        both: values that hold for all sides, by axis.
        a: values of the first side, the baseline, by axis.
        b: values of the second side, by axis.
        further: values of the other sides, by axis.
        by: the axis of SIDE_AXES whose values are the sides where the URL names none; "" for the first that varies.
        how: "stratified" prevents a paired comparison.
        points: the difference worth detecting, in percentage points.
        instances: "all" shows the instances in which no side differs, too.
        chosen: models, profiles, strategies and scenarios, where several are chosen, and times.
    """

    both: Mapping[str, str] = field(default_factory=dict)
    a: Mapping[str, str] = field(default_factory=dict)
    b: Mapping[str, str] = field(default_factory=dict)
    further: tuple[Mapping[str, str], ...] = ()
    by: str = ""
    metric: str = "given"
    group: str = ""
    kind: str = ""
    how: str = ""
    points: int = DEFAULT_POINTS
    instances: str = ""
    demo: bool = False
    chosen: ResultFilter = NO_FILTER
    ignored: tuple[str, ...] = ()

    @classmethod
    def from_query(cls, query: QueryParams) -> "CompareQuery":
        """Return the query of these URL parameters."""
        chosen, unread_days = ResultFilter.from_query(query)
        ignored: list[str] = list(unread_days)
        several = {name for name, values in chosen.choices.items() if len(values) > 1}
        both = _parse_axes(query, "", ignored, several)
        if both.pop("published", ""):  # a published row is a side; it is no scope of trials
            ignored.append("published")
        sides = [_parse_axes(query, f"{letter}_", ignored) for letter in SIDE_LETTERS]
        values = {name: _read_text(query, name) for name in ("metric", "kind", "how", "points", "by", "instances")}
        allowed = {"metric": SUCCESS_METRICS, "kind": INSTANCE_KIND_CHOICES, "how": PAIRING_CHOICES,
                   "by": SIDE_AXES, "instances": ("all",)}  # fmt: skip
        wrong = [name for name, names in allowed.items() if values[name] and values[name] not in names]
        if values["points"] and parse_whole_number(values["points"], minimum=1, maximum=50) is None:
            wrong.append("points")
        read = {name: "" if name in wrong else value for name, value in values.items()}
        return cls(
            both=both, a=sides[0], b=sides[1], further=tuple(side for side in sides[2:] if side),
            by=read["by"],
            metric=read["metric"] or "given",
            group=_read_text(query, "group"),
            kind=read["kind"],
            how=read["how"],
            points=int(read["points"] or DEFAULT_POINTS),
            instances=read["instances"],
            demo=_read_text(query, "demo") == "1" or _read_text(query, "scope") == "demo",
            chosen=replace(chosen.drop_single_choices(), scenarios=chosen.scenarios),
            ignored=(*ignored, *wrong),
        )  # fmt: skip

    @property
    def sides(self) -> tuple[Mapping[str, str], ...]:
        """Return all values of each side, by axis, the baseline first; two at least."""
        return tuple({**self.both, **values} for values in self.own_values)

    @property
    def own_values(self) -> tuple[Mapping[str, str], ...]:
        """Return the values that each side does not share with all sides, by axis."""
        return (self.a, self.b, *self.further)

    def side(self, name: str) -> dict[str, str]:
        """Return all values of side `a` or `b`, by axis."""
        return {**self.both, **(self.a if name == "a" else self.b)}

    @property
    def is_complete(self) -> bool:
        """Return whether there are sides to compare, each different from the baseline."""
        baseline, *others = self.sides
        return bool(baseline) and all(side and side != baseline for side in others)

    @property
    def names_sides(self) -> bool:
        """Return whether a side has a value of its own."""
        return any(self.own_values)

    @property
    def has_several(self) -> bool:
        """Return whether more than two sides are named."""
        return bool(self.further)

    @property
    def published(self) -> bool:
        """Return whether a side is a row of the published matrix."""
        return any("published" in side for side in self.sides)

    def with_sides(self, sides: Sequence[Mapping[str, str]]) -> "CompareQuery":
        """Return the query with these values of each side, the baseline first; at least two."""
        return replace(self, a=sides[0], b=sides[1], further=tuple(sides[2:]), by="")

    def pair(self, number: int) -> "CompareQuery":
        """Return the query that compares only the side with this number, from 1, with the baseline."""
        return self.with_sides((self.a, self.own_values[number]))

    def pin(self, number: int) -> str:
        """Return the query string with the side of this number as the baseline; the others keep their order."""
        sides = self.own_values
        return self.with_sides((sides[number], *sides[:number], *sides[number + 1 :])).query()

    def remove(self, number: int) -> str:
        """Return the query string without the side of this number."""
        sides = self.own_values
        return self.with_sides((*sides[:number], *sides[number + 1 :], {})).query()

    def query(self, **changes: object) -> str:
        """Return the query string without default values.

        Args:
            changes: new values by field; `swap=True` exchanges the first two sides.
        """
        first = (self.b, self.a) if changes.pop("swap", False) else (self.a, self.b)
        pairs = [(name, value) for name, value in self.both.items()]
        for letter, side in zip(SIDE_LETTERS, (*first, *self.further), strict=False):
            pairs += [(f"{letter}_{name}", value) for name, value in side.items()]
        usual: dict[str, object] = {"by": "", "metric": "given", "group": "", "kind": "", "how": ""}
        usual |= {"points": DEFAULT_POINTS, "instances": ""}
        values = {name: getattr(self, name) for name in usual} | changes
        pairs += [(name, str(values[name])) for name in usual if values[name] != usual[name]]
        return urlencode([*pairs, *self.chosen.pairs, *([("demo", "1")] if self.demo else [])])

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Return the parameters of the query string, for the hidden fields of a form."""
        return parse_qsl(self.query())


def _parse_axes(query: QueryParams, prefix: str, ignored: list[str], several: Set[str] = frozenset()) -> dict[str, str]:
    found = {}
    for axis in (axis for axis in AXES if axis not in several):
        value = _read_text(query, prefix + axis)
        if value and (len(value) > MAX_VALUE_CHARS or not _is_readable(axis, value)):
            ignored.append(prefix + axis)
        elif value:
            found[axis] = value
    return found


def _is_readable(axis: str, value: str) -> bool:
    if axis in RUN_AXES:
        return None not in (parse_whole_number(part, minimum=1) for part in value.split(","))
    if axis == "published":
        return parse_whole_number(value.removeprefix("p"), maximum=10_000) is not None
    if axis == "stream":
        return value in (STREAMED, WHOLE)
    return axis != "day" or _is_day(value)


def _is_day(value: str) -> bool:
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _read_text(query: QueryParams, name: str) -> str:
    return clean_text(query.get(name, ""))
