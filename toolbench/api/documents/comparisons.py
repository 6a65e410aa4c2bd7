"""Parameters of comparisons, and schemas of their results."""

from collections.abc import Mapping
from typing import Literal

from toolbench.api.documents.described import Schema
from toolbench.api.documents.results import TableDocument
from toolbench.lab.results.compare.query import MAX_VALUE_CHARS, PARAMETER_NAMES

_DESCRIPTIONS: Mapping[str, str] = {
    "run": "ids of runs, separated by commas",
    "config": "ids of configurations, separated by commas",
    "provider": "name of a provider",
    "model": "name of a model",
    "canonical": "name of a canonical model",
    "profile": "name of a sampling profile",
    "strategy": "strategy or preset",
    "method": "method: native, text_json, template or constrained",
    "examples": "name of an example set; `none` for trials without examples",
    "stream": "`streamed` for streamed answers, `whole` for others",
    "prompt": "version of the scenario's prompt",
    "upstream": "host to which a router sent the requests",
    "day": "day (UTC) on which the trials began, such as 2026-11-24",
    "published": "row of the published snapshot; only the page compares these rows, so every value is refused (422)",
    "metric": "`given` for answered success (the default), `delivered` for end-to-end success or `first` for "
    "first-attempt success",
    "group": "name of a group of scenarios; the default is the group of the tool scenarios",
    "kind": "`parity` for the published wording of the scenarios, `drawn` for drawn instances",
    "how": "`stratified` to compare stratum by stratum also where instances could be compared in pairs",
    "points": "difference worth detecting, in percentage points, 1 to 50; the default is 7",
    "demo": "`1` for simulated trials, if no run or configuration is named",
    "scenario": "slug of a scenario; several parameters for several scenarios",
    "after": "day (UTC) on or after which the runs were created",
    "before": "day (UTC) on or before which the runs were created",
    "upto": "highest id of a run",
}


def build_compare_parameters() -> list[dict[str, object]]:
    """Return the parameters of a comparison for the OpenAPI document."""
    return [
        {
            "in": "query",
            "name": name,
            "required": False,
            "description": _describe_parameter(name),
            "schema": {"type": "string", "maxLength": MAX_VALUE_CHARS},
        }
        for name in PARAMETER_NAMES
    ]


def _describe_parameter(name: str) -> str:
    letter, separator, axis = name.rpartition("_")
    return f"{_DESCRIPTIONS[axis]}; of side {letter}." if separator else f"{_DESCRIPTIONS[name]}."


class ChangedInstanceDocument(Schema):
    """Instance whose outcome differs between the sides.

    Attributes:
        fate: `regressed` if the first side passed, `fixed` if the second side did.
        instance: seed of the instance.
        first: id of a trial of the first side.
        second: id of a trial of the second side.
    """

    fate: Literal["regressed", "fixed"]
    scenario: str
    instance: int
    first: int
    second: int


class ComparisonDocument(Schema):
    """Comparison of two sides.

    Attributes:
        names: names of the sides, the baseline first.
        comparable: whether the sides share a comparison stratum and no trial. Otherwise nothing is compared.
        shared_trials: number of trials that belong to both sides.
        metric: name of the compared metric in words.
        how: how the rates are compared: `paired` by instance, or `stratified`: stratum by stratum.
        noise: A/A noise: difference, as a fraction, that 95 % of comparisons of equal sides of this size stay below.
        points: difference in percentage points that `needed_trials` can detect.
        needed_trials: number of trials of each side that detects `points`.
        more_trials: number of further trials with which the side with fewer trials reaches `needed_trials`, or 0.
        warnings: sentences about limits of the comparison.
        changed: instances whose outcome differs between the sides: the regressed ones, at most 10, then the fixed ones,
            at most 10.
        table: a row for all scenarios, then rows for each scenario and each metric of calls.
    """

    names: list[str]
    comparable: bool
    shared_trials: int
    metric: str
    how: Literal["paired", "stratified"]
    noise: float
    points: int
    needed_trials: int
    more_trials: int
    warnings: list[str]
    changed: list[ChangedInstanceDocument]
    table: TableDocument


class SidesDocument(Schema):
    """The comparison of three sides or more with the first one.

    Attributes:
        baseline: name of the first side.
        names: names of all sides, the baseline first.
        metric: name of the compared metric in words.
        comparisons: number of differences that are shown together; their intervals hold for all of them at once.
        points: difference in percentage points that `needed_trials` can detect.
        needed_trials: number of trials of each side that detects `points`.
        more_trials: number of further trials with which the smallest side reaches `needed_trials`, or 0.
        warnings: sentences about limits of the comparison.
        table: a row for each side, the baseline first.
    """

    baseline: str
    names: list[str]
    metric: str
    comparisons: int
    points: int
    needed_trials: int
    more_trials: int
    warnings: list[str]
    table: TableDocument
