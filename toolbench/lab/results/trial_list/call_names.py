"""Names of the tools of expected and made calls, for the list of trials."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, Subquery
from django.db.models.functions import JSONObject

from toolbench.evals.expected_calls import ExpectedCalls
from toolbench.evals.types import Scenario
from toolbench.lab.models import Judgement, Step, Trial
from toolbench.lab.scenarios.catalogue import ScenarioKey, load_scenarios

NO_CALL, UNDETERMINED, UNKNOWN_CALLS = "no call", "not determined", "unknown"
MAX_NAMED_CALLS = 20  # of one trial; for other calls, only their number is shown
MAX_NAME_CHARS = 60


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


def read_call_names(trials: Sequence[Trial]) -> Mapping[int, CallNames]:
    """Return the names of calls by trial id.

    The function sends one query, or two if a scenario is a test case.

    Args:
        trials: trials with their runs. Their seeds determine the expected calls, so no body has to be read.
    """
    stored = _read_calls_and_versions([trial.pk for trial in trials])
    got: dict[int, str] = {}
    scenario_keys: dict[int, ScenarioKey] = {}
    for trial in trials:
        got[trial.pk], version = stored.get(trial.pk, ("", None))  # a trial may have been deleted meanwhile
        scenario_keys[trial.pk] = (trial.scenario, version or trial.scenario_version)
    scenarios = load_scenarios(scenario_keys.values())
    expected_by_instance: dict[Hashable, str] = {}  # drawing an instance may take milliseconds
    call_names: dict[int, CallNames] = {}
    for trial in trials:
        scenario_key = scenario_keys[trial.pk]
        instance = _identify_instance(trial, scenario_key)
        if instance not in expected_by_instance:
            expected_by_instance[instance] = _name_expected(trial, scenarios.get(scenario_key))
        call_names[trial.pk] = CallNames(expected_by_instance[instance], got[trial.pk])
    return call_names


def _identify_instance(trial: Trial, key: ScenarioKey) -> Hashable:
    """Return a key that is equal for trials with the same expected calls."""
    return key, trial.instance_kind, trial.instance_seed, trial.run.origin.get("kind")


def _read_calls_and_versions(ids: Sequence[int]) -> Mapping[int, tuple[str, int | None]]:
    """Return the made calls in words and the scenario version of the current verdict, by trial id.

    The version is None for a trial that was never re-judged.
    """
    tools = Step.objects.filter(trial=OuterRef("pk"), kind=Step.Kind.TOOL, execution=OuterRef("execution"))
    calls = ArraySubquery(tools.order_by("ordinal").values_list(JSONObject(name="tool_name", ok="ok")))
    judgements = Judgement.objects.filter_last_executions()
    judged = judgements.filter(trial=OuterRef("pk"), current=True).values("scenario_version")[:1]
    rows = Trial.objects.filter(pk__in=ids).order_by().values_list("pk", calls, Subquery(judged))
    return {
        pk: (_join_names([_mark_name(str(call["name"]), bool(call["ok"])) for call in made]), version)
        for pk, made, version in rows
    }


def _mark_name(name: str, ok: bool) -> str:
    shown = name[:MAX_NAME_CHARS] or "(no name)"
    return shown if ok else f"{shown} ✗"


def _name_expected(trial: Trial, scenario: Scenario | None) -> str:
    if scenario is None or trial.run.origin.get("kind") == "inspect":
        return UNKNOWN_CALLS
    instance = scenario.draw_instance(trial.instance_seed, kind=trial.instance_kind)
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
