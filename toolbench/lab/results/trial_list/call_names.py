"""Names of the tools of expected and made calls, for the list of trials."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import JSONObject

from toolbench.evals.expected_calls import ExpectedCalls
from toolbench.evals.types import Scenario
from toolbench.lab.models import Judgement, Step, Trial
from toolbench.lab.scenarios.catalogue import ScenarioKey, load_scenarios

NO_CALL, UNDETERMINED, UNKNOWN_CALLS = "no call", "not determined", "unknown"
MAX_NAMED_CALLS = 20  # of one trial; for other calls, only their number is shown
MAX_NAME_CHARS = 60
# Columns of a trial, and annotations of `annotate_calls`, that `build_call_names` reads.
CALL_FIELDS = (
    *("pk", "scenario", "scenario_version", "instance_kind", "instance_seed", "run__origin"),
    *("made_calls", "judged_version"),
)


@dataclass(frozen=True, slots=True)
class CallNames:
    """Calls of a trial in words, such as `state_get, state_patch ×2`.

    Attributes:
        expected: tools of the expected calls; or NO_CALL; or UNDETERMINED if the task does not determine the calls; or
            UNKNOWN_CALLS if the scenario is not installed or the trial was imported from an Inspect log.
        got: tools of the made calls in order, with ✗ after refused and failed calls; empty without a call.
    """

    expected: str
    got: str


def annotate_calls(trials: QuerySet[Trial]) -> QuerySet[Trial]:
    """Annotate trials with their made calls and the scenario version of the current verdict.

    The version is None for a trial that was never re-judged.
    """
    tools = Step.objects.filter(trial=OuterRef("pk"), kind=Step.Kind.TOOL, execution=OuterRef("execution"))
    calls = ArraySubquery(tools.order_by("ordinal").values_list(JSONObject(name="tool_name", ok="ok")))
    judgements = Judgement.objects.filter_last_executions()
    judged = judgements.filter(trial=OuterRef("pk"), current=True).values("scenario_version")[:1]
    return trials.annotate(made_calls=calls, judged_version=Subquery(judged))


def build_call_names(rows: Sequence[Any]) -> Mapping[int, CallNames]:
    """Return the names of calls by trial id.

    The function sends one query if a scenario is a test case, otherwise none.

    Args:
        rows: named rows with CALL_FIELDS. The seeds determine the expected calls, so no body has to be read.
    """
    scenario_keys = {row.pk: (row.scenario, row.judged_version or row.scenario_version) for row in rows}
    scenarios = load_scenarios(scenario_keys.values())
    expected_by_instance: dict[Hashable, str] = {}  # drawing an instance may take milliseconds
    call_names: dict[int, CallNames] = {}
    for row in rows:
        scenario_key = scenario_keys[row.pk]
        instance = _identify_instance(row, scenario_key)
        if instance not in expected_by_instance:
            expected_by_instance[instance] = _name_expected(row, scenarios.get(scenario_key))
        made = _join_names([_mark_name(str(call["name"]), bool(call["ok"])) for call in row.made_calls])
        call_names[row.pk] = CallNames(expected_by_instance[instance], made)
    return call_names


def _identify_instance(row: Any, key: ScenarioKey) -> Hashable:
    """Return a key that is equal for trials with the same expected calls."""
    return key, row.instance_kind, row.instance_seed, row.run__origin.get("kind")


def _mark_name(name: str, ok: bool) -> str:
    shown = name[:MAX_NAME_CHARS] or "(no name)"
    return shown if ok else f"{shown} ✗"


def _name_expected(row: Any, scenario: Scenario | None) -> str:
    if scenario is None or row.run__origin.get("kind") == "inspect":
        return UNKNOWN_CALLS
    instance = scenario.draw_instance(row.instance_seed, kind=row.instance_kind)
    return _describe_expected(scenario.build_expected_calls(instance))


def _describe_expected(expected: ExpectedCalls) -> str:
    if expected.needs_call is False:
        return NO_CALL
    return _join_names([call.tool for call in expected.calls] or list(expected.tools)) or UNDETERMINED


def _join_names(names: Sequence[str]) -> str:
    """Return a text such as `get, patch ×2, 3 more`: the first MAX_NAMED_CALLS names, and the number of others."""
    counted_names = [(name, len(list(same))) for name, same in groupby(names[:MAX_NAMED_CALLS])]
    parts = [name if count == 1 else f"{name} ×{count}" for name, count in counted_names]
    more = len(names) - MAX_NAMED_CALLS
    return ", ".join([*parts, *([f"{more} more"] if more > 0 else [])])
