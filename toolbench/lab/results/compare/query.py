"""The query of the compare page: two sides, each chosen by any of the axes.

Unreadable values are ignored and named; they never raise an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from urllib.parse import urlencode

from toolbench.lab.query_params import QueryParams, clean_text, parse_whole_number
from toolbench.lab.results.trial_list.filter import STREAMED, WHOLE

AXES = {
    "run": "Run", "config": "Configuration", "provider": "Provider", "model": "Model", "canonical": "Same weights",
    "profile": "Profile", "strategy": "Strategy", "method": "Method", "examples": "Examples", "stream": "Answers",
    "prompt": "Prompt version", "upstream": "Upstream", "day": "Day", "published": "Published row",
}  # fmt: skip
SIDES = ("a", "b")
SUCCESS_METRICS = {
    "given": "Success given an answer",
    "delivered": "Delivered success",
    "first": "First-attempt success",
}
INSTANCE_KIND_CHOICES = ("", "parity", "drawn")
PAIRING_CHOICES = ("", "stratified")
DEFAULT_POINTS = 7
RUN_AXES = ("run", "config")
MAX_VALUE_CHARS = 1_000  # characters of a value; cut, a list of runs would end in another run


@dataclass(frozen=True, slots=True)
class CompareQuery:
    """The sides to compare and how to compare them.

    Attributes:
        both: values that hold for both sides, by axis.
        a: values of the first side, by axis.
        b: values of the second side, by axis.
        how: "stratified" prevents a paired comparison.
        points: the difference worth detecting, in percentage points.
    """

    both: Mapping[str, str] = field(default_factory=dict)
    a: Mapping[str, str] = field(default_factory=dict)
    b: Mapping[str, str] = field(default_factory=dict)
    metric: str = "given"
    group: str = ""
    kind: str = ""
    how: str = ""
    points: int = DEFAULT_POINTS
    demo: bool = False
    ignored: tuple[str, ...] = ()

    @classmethod
    def from_query(cls, query: QueryParams) -> "CompareQuery":
        """Return the query of these URL parameters."""
        ignored: list[str] = []
        read = {prefix: _parse_axes(query, prefix, ignored) for prefix in ("", "a_", "b_")}
        points = _read_text(query, "points")
        wrong = {
            "metric": _read_text(query, "metric") not in ("", *SUCCESS_METRICS),
            "kind": _read_text(query, "kind") not in INSTANCE_KIND_CHOICES,
            "how": _read_text(query, "how") not in PAIRING_CHOICES,
            "points": bool(points) and parse_whole_number(points, minimum=1, maximum=50) is None,
        }
        ignored += [name for name, is_wrong in wrong.items() if is_wrong]
        return cls(
            both=read[""], a=read["a_"], b=read["b_"],
            metric="given" if wrong["metric"] else _read_text(query, "metric") or "given",
            group=_read_text(query, "group"),
            kind="" if wrong["kind"] else _read_text(query, "kind"),
            how="" if wrong["how"] else _read_text(query, "how"),
            points=DEFAULT_POINTS if wrong["points"] else int(points or DEFAULT_POINTS),
            demo=_read_text(query, "demo") == "1",
            ignored=tuple(ignored),
        )  # fmt: skip

    def side(self, name: str) -> dict[str, str]:
        """Return all values of side `a` or `b`, by axis."""
        return {**self.both, **(self.a if name == "a" else self.b)}

    @property
    def is_complete(self) -> bool:
        """Return whether there are two different sides to compare."""
        return bool(self.side("a") and self.side("b")) and self.side("a") != self.side("b")

    @property
    def published(self) -> bool:
        """Return whether both sides are rows of the published matrix."""
        return all("published" in self.side(name) for name in SIDES)

    def query(self, **changes: object) -> str:
        """Return the query string without default values.

        Args:
            changes: new values by field; `swap=True` exchanges the sides.
        """
        sides = (self.b, self.a) if changes.pop("swap", False) else (self.a, self.b)
        pairs = [(name, value) for name, value in self.both.items()]
        pairs += [(f"{p}_{name}", value) for p, side in zip(SIDES, sides, strict=True) for name, value in side.items()]
        usual = {"metric": "given", "group": "", "kind": "", "how": "", "points": DEFAULT_POINTS}
        values = {name: getattr(self, name) for name in usual} | changes
        pairs += [(name, str(values[name])) for name in usual if values[name] != usual[name]]
        return urlencode([*pairs, *([("demo", "1")] if self.demo else [])])


def _parse_axes(query: QueryParams, prefix: str, ignored: list[str]) -> dict[str, str]:
    found = {}
    for axis in AXES:
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
