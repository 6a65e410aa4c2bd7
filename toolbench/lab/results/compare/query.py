"""Query of the compare page: the sides, each with values of any axes. The first side is the baseline.

An axis is a property by which trials can be selected, such as the model or the day.

Unreadable values are ignored and, except for `demo` and `scope`, listed in the query. No value raises an error.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, urlencode

from toolbench.lab.metrics.result_filter import DATE_NAMES, NO_FILTER, ResultFilter, parse_day
from toolbench.lab.planning.run_request import NO_EXAMPLES
from toolbench.lab.query_params import QueryParams, clean_text, parse_whole_number
from toolbench.lab.results.trial_list.filter import STREAMED, WHOLE

# labels of the axes, by name
AXES = {
    "run": "Run", "config": "Configuration", "provider": "Provider", "model": "Model", "canonical": "Same weights",
    "profile": "Profile", "strategy": "Strategy", "method": "Method", "examples": "Examples", "stream": "Answers",
    "prompt": "Prompt version", "upstream": "Upstream", "day": "Day", "published": "Published row",
}  # fmt: skip
SIDE_LETTERS = "abcdefghijkl"  # each side has a letter; the URL parameter `b_model` is the model of the second side
MAX_SIDES = len(SIDE_LETTERS)
# axes whose values can be the sides if the URL names no sides
SIDE_AXES = ("model", "strategy", "profile", "method", "provider")
SUCCESS_METRICS = {
    "given": "Answered success",
    "delivered": "End-to-end success",
    "first": "First-attempt success",
}
# parameters of the API and the command line; `by`, `instances` and `scope` are parameters of the page only
PARAMETER_NAMES = (
    *(f"{side}{axis}" for side in ("", *(f"{letter}_" for letter in SIDE_LETTERS)) for axis in AXES),
    *("metric", "group", "kind", "how", "points", "demo", "scenario", *DATE_NAMES, "upto"),
)
INSTANCE_KIND_LABELS = {"parity": "fixed instances", "drawn": "drawn instances"}
DEFAULT_POINTS = 7  # percentage points
MAX_POINTS = 50
RUN_AXES = ("run", "config")  # their values are ids, separated by commas
# columns of configurations, by axis
CONFIG_COLUMNS = {"provider": "provider_name", "model": "model_name"} | {
    name: name for name in ("canonical", "profile", "strategy", "method", "examples", "stream")
}
MAX_VALUE_CHARS = 1_000  # a longer value is ignored, since a truncated list of ids could end in another id


@dataclass(frozen=True, slots=True)
class CompareQuery:
    """Sides to compare and how to compare them.

    Attributes:
        both: values that hold for all sides, by axis.
        a: values of the first side, the baseline, by axis.
        b: values of the second side, by axis.
        further: values of the third side and those after it, by axis.
        by: the axis of SIDE_AXES whose values are the sides if the URL names no sides; "" for the first of SIDE_AXES
            with several values.
        metric: a key of SUCCESS_METRICS.
        group: the scenario group; "" for the default.
        kind: the instance kind; "" for the default.
        how: "stratified" prevents a paired comparison; "" allows it.
        points: the difference worth detecting, in percentage points.
        instances: "" shows only instances with a difference, "all" shows the others too.
        is_published_scope: whether the sides are published rows if the URL names no sides.
        demo: whether sides without a run or configuration have simulated trials instead of real ones.
        chosen: filter for all sides: scenarios, dates and newest run; also models, profiles and strategies, if several
            of them are chosen. A single model, profile or strategy is in `both`.
        ignored: names of the parameters that could not be read, without `demo` and `scope`.
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
    is_published_scope: bool = False
    demo: bool = False
    chosen: ResultFilter = NO_FILTER
    ignored: tuple[str, ...] = ()

    @classmethod
    def from_query(cls, query: QueryParams) -> "CompareQuery":
        """Return the query of these URL parameters."""
        chosen, unread_names = ResultFilter.from_query(query)
        ignored: list[str] = list(unread_names)
        chosen_axes = {name for name, values in chosen.choices.items() if len(values) > 1}
        both = _parse_axes(query, "", ignored, chosen_axes)
        if both.pop("published", ""):  # a published row is a side; it cannot hold for all sides
            ignored.append("published")
        sides = [_parse_axes(query, f"{letter}_", ignored) for letter in SIDE_LETTERS]
        values = {name: _read_text(query, name) for name in ("metric", "kind", "how", "points", "by", "instances")}
        allowed = {"metric": SUCCESS_METRICS, "kind": INSTANCE_KIND_LABELS, "how": ("stratified",),
                   "by": SIDE_AXES, "instances": ("all",)}  # fmt: skip
        unread = [name for name, names in allowed.items() if values[name] and values[name] not in names]
        if values["points"] and parse_whole_number(values["points"], minimum=1, maximum=MAX_POINTS) is None:
            unread.append("points")
        valid = {name: "" if name in unread else value for name, value in values.items()}
        return cls(
            both=both, a=sides[0], b=sides[1], further=tuple(side for side in sides[2:] if side),
            by=valid["by"],
            metric=valid["metric"] or "given",
            group=_read_text(query, "group"),
            kind=valid["kind"],
            how=valid["how"],
            points=int(valid["points"] or DEFAULT_POINTS),
            instances=valid["instances"],
            is_published_scope=_read_text(query, "scope") == "published",
            demo=_read_text(query, "demo") == "1" or _read_text(query, "scope") == "demo",
            chosen=replace(chosen.drop_single_choices(), scenarios=chosen.scenarios),
            ignored=(*ignored, *unread),
        )  # fmt: skip

    @property
    def sides(self) -> tuple[Mapping[str, str], ...]:
        """Return all values of each side, by axis, the baseline first; at least two sides, which may be empty."""
        return tuple({**self.both, **values} for values in self.side_values)

    @property
    def side_values(self) -> tuple[Mapping[str, str], ...]:
        """Return the values of each side without those that hold for all sides, by axis."""
        return (self.a, self.b, *self.further)

    @property
    def is_complete(self) -> bool:
        """Return whether the sides can be compared: all have values, and none but the first equals the baseline."""
        baseline, *others = self.sides
        return bool(baseline) and all(side and side != baseline for side in others)

    @property
    def has_named_sides(self) -> bool:
        """Return whether the URL names sides; otherwise they are chosen from the selected trials or published rows."""
        return any(self.side_values)

    @property
    def runs(self) -> tuple[int, ...]:
        """Return the primary keys of the runs that are chosen for all sides; () without such a choice."""
        return tuple(int(pk) for pk in self.both.get("run", "").split(",") if pk)

    @property
    def can_choose_runs(self) -> bool:
        """Return whether runs for all sides can be chosen: no side has its own runs or configurations."""
        return not any(axis in side for axis in RUN_AXES for side in self.side_values)

    @property
    def has_more_than_two(self) -> bool:
        """Return whether more than two sides are named."""
        return bool(self.further)

    @property
    def is_published(self) -> bool:
        """Return whether a side is a published row, or no side is named and the scope is "published"."""
        return any("published" in side for side in self.sides) or (self.is_published_scope and not self.has_named_sides)

    def with_sides(self, sides: Sequence[Mapping[str, str]]) -> "CompareQuery":
        """Return the query with these values of each side, without `by`.

        Args:
            sides: the values of at least two sides, the baseline first.
        """
        return replace(self, a=sides[0], b=sides[1], further=tuple(sides[2:]), by="")

    def select_pair(self, index: int) -> "CompareQuery":
        """Return the query with only the baseline and the side with this index, which is at least 1."""
        return self.with_sides((self.a, self.side_values[index]))

    def build_pin_query(self, index: int) -> str:
        """Return the query string with the side of this index as the baseline; the others keep their order."""
        sides = self.side_values
        return self.with_sides((sides[index], *sides[:index], *sides[index + 1 :])).query()

    def build_remove_query(self, index: int) -> str:
        """Return the query string without the side of this index."""
        sides = self.side_values
        return self.with_sides((*sides[:index], *sides[index + 1 :], {})).query()

    def build_scope_query(self, scope: str) -> str:
        """Return the query string of the same filters in another scope, without runs and named sides.

        Args:
            scope: "real", "demo" or "published".
        """
        both = {axis: value for axis, value in self.both.items() if axis not in RUN_AXES}
        unnamed = replace(self, both=both, a={}, b={}, further=())
        return replace(unnamed, demo=scope == "demo", is_published_scope=scope == "published").query()

    def query(self, **changes: object) -> str:
        """Return the query string without default values.

        Args:
            changes: new values of `by`, `metric`, `group`, `kind`, `how`, `points` and `instances`; `swap=True`
                exchanges the first two sides.
        """
        first_two = (self.b, self.a) if changes.pop("swap", False) else (self.a, self.b)
        pairs = [(name, value) for name, value in self.both.items()]
        for letter, side in zip(SIDE_LETTERS, (*first_two, *self.further), strict=False):
            pairs += [(f"{letter}_{name}", value) for name, value in side.items()]
        defaults: dict[str, object] = {"by": "", "metric": "given", "group": "", "kind": "", "how": ""}
        defaults |= {"points": DEFAULT_POINTS, "instances": ""}
        values = {name: getattr(self, name) for name in defaults} | changes
        pairs += [(name, str(values[name])) for name in defaults if values[name] != defaults[name]]
        scopes = [("demo", "1")] if self.demo else [("scope", "published")] if self.is_published_scope else []
        return urlencode([*pairs, *self.chosen.pairs, *scopes])

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Return the parameters of the query string, for the hidden fields of a form."""
        return parse_qsl(self.query())


def _parse_axes(
    query: QueryParams, prefix: str, ignored: list[str], skipped_axes: Set[str] = frozenset()
) -> dict[str, str]:
    """Return the values of the parameters with this prefix by axis.

    The names of unreadable parameters are added to `ignored`. The parameters of `skipped_axes` are not read, because
    the filter of all sides has several values of them.
    """
    values = {}
    for axis in (axis for axis in AXES if axis not in skipped_axes):
        value = _read_runs(query, prefix + axis) if axis == "run" else _read_text(query, prefix + axis)
        if value and (len(value) > MAX_VALUE_CHARS or not _is_readable(axis, value)):
            ignored.append(prefix + axis)
        elif value:
            values[axis] = value
    return values


def _is_readable(axis: str, value: str) -> bool:
    if axis in RUN_AXES:
        return None not in (parse_whole_number(part, minimum=1) for part in value.split(","))
    if axis == "published":
        return parse_whole_number(value.removeprefix("p"), maximum=10_000) is not None
    if axis == "stream":
        return value in (STREAMED, WHOLE)
    return axis != "day" or parse_day(value) is not None


def read_config_values(axes: Mapping[str, str]) -> dict[str, str | bool]:
    """Return the values of the axes that are columns of configurations, by column."""
    values: dict[str, str | bool] = {column: axes[axis] for axis, column in CONFIG_COLUMNS.items() if axis in axes}
    if "stream" in axes:
        values["stream"] = axes["stream"] == STREAMED
    if axes.get("examples") == NO_EXAMPLES:
        values["examples"] = ""
    return values


def _read_runs(query: QueryParams, name: str) -> str:
    """Return the distinct values of a parameter, separated by commas; checkboxes send a parameter several times."""
    return ",".join(dict.fromkeys(filter(None, map(clean_text, query.getlist(name)))))


def _read_text(query: QueryParams, name: str) -> str:
    return clean_text(query.get(name, ""))
