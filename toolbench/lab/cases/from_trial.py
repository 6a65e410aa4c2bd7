"""Draft of a test case from a stored trial: its messages with its calls and tool results, or a copy of its task."""

from dataclasses import replace

from toolbench.engine.types import JsonObject, Message
from toolbench.evals.types import Instance, Scenario
from toolbench.evals.user_cases.copying import copy_scenario, is_copyable
from toolbench.evals.user_cases.definition import CaseExpectation
from toolbench.evals.user_cases.scenario import UserCaseScenario
from toolbench.lab.cases.drafts import CaseDraft, build_draft, render_json
from toolbench.lab.models import Case, CaseSet, Trial
from toolbench.lab.scenarios.catalogue import load_scenario
from toolbench.lab.traces.reading import StepWithDetails, list_steps

PASSED_NOTE = "Filled in from trial {id}, which passed. Its calls are the expected calls."
FAILED_NOTE = (
    "Filled in from trial {id}, which did not pass. Its calls are filled in as the expected calls: correct them."
)
NO_CALL_NOTE = (
    "Filled in from trial {id}, which made no call, so no call is expected: correct this if the task needs one."
)
UNREADABLE_NOTE = (
    "Filled in from trial {id}. None of its calls could be read, so no call is filled in: enter what is expected."
)
TASK_NOTE = (
    "A copy of the task of trial {id}, which did not pass, with the expectation, the tool results and the state of its "
    "scenario, not the calls of the trial."
)
COPY_NOTE = (
    "A copy of the test case of trial {id}, with its expectation, not the calls of the trial. To change the test case "
    "itself and re-judge its trials, edit it."
)
# Expectations of a message of the playground for which the user expects nothing: with tools, and without tools.
ANY_ANSWER: JsonObject = {"checks": [{"answer_given": True}]}
NO_CALL: JsonObject = {"no_call": True}
_ANY_EXPECTATIONS = (CaseExpectation(checks=({"answer_given": True},)), CaseExpectation(no_call=True))
_NOT_ENDED = "Trial {id} has not ended. Save it when it has an answer."
_NOT_JUDGED = (
    "Trial {id} neither passed nor failed, so no test case can expect its calls. Send its message again, and save the "
    "trial of that message."
)
_REMOVED = (
    "The answer of trial {id} was removed by the rule “{rule}”, so no test case can expect its calls. Send its message "
    "again, and save the trial of that message."
)


class CaseNotCreatedError(Exception):
    """Case that cannot be created from a trial or a scenario; the message gives the reason."""


def build_draft_from_trial(trial_id: int, *, needs_calls: bool = True) -> tuple[CaseDraft, str]:
    """Return the draft of a new case, and a note about its origin.

    Args:
        trial_id: the trial.
        needs_calls: False if the caller drops the expectation. If True, the trial must have ended; if its calls become
            the expected calls, it must also have passed or failed, and its bodies must still be stored.

    Raises:
        CaseNotCreatedError: no case can be created from the trial.
    """
    trial = Trial.objects.filter(pk=trial_id, run__deleted_at=None).prefetch_related("steps__body").first()
    if trial is None:
        raise CaseNotCreatedError(f"There is no trial {trial_id}.")
    if needs_calls and trial.state != Trial.State.DONE:
        raise CaseNotCreatedError(_NOT_ENDED.format(id=trial_id))
    scenario = load_trial_scenario(trial)
    tool_steps = [step for step in list_steps(trial) if step.is_tool]
    note = _choose_note(trial, tool_steps)
    title = f"{scenario.title} (from trial {trial_id})"
    if isinstance(scenario, UserCaseScenario):
        draft = build_draft(title, scenario.case)
        if scenario.case.expect in _ANY_EXPECTATIONS and _is_of_playground(trial):  # the user expected nothing
            if needs_calls:
                _check_calls(trial)
            return replace(draft, expect=_render_calls(tool_steps)), note
        return draft, COPY_NOTE.format(id=trial_id)
    instance = scenario.draw_instance(trial.instance_seed, kind=trial.instance_kind)
    if trial.outcome != Trial.Outcome.PASS and is_copyable(scenario):  # its calls are wrong or missing
        return build_draft(title, copy_scenario(scenario, instance)), TASK_NOTE.format(id=trial_id)
    if instance.further:
        message_count = 1 + len(instance.further)
        raise CaseNotCreatedError(
            f"In trial {trial_id} the user sends {message_count} messages, one after each answer. Only a trial with "
            "one message can become a test case. Write one for the message that matters, with the messages before it "
            "as its history."
        )
    if needs_calls:
        _check_calls(trial)
    return _build_draft_with_calls(title, instance, tool_steps), note


def _check_calls(trial: Trial) -> None:
    """Check that the calls of an ended trial can become expected calls.

    Otherwise a trial without an answer would become a case that expects no call.

    Raises:
        CaseNotCreatedError: the trial neither passed nor failed, or its bodies were removed.
    """
    if trial.outcome not in (Trial.Outcome.PASS, Trial.Outcome.FAIL):
        raise CaseNotCreatedError(_NOT_JUDGED.format(id=trial.pk))
    if trial.bodies_removed_at is not None:
        raise CaseNotCreatedError(_REMOVED.format(id=trial.pk, rule=trial.bodies_rule))


def load_trial_scenario(trial: Trial) -> Scenario:
    """Return the scenario of a trial in the version of its launch.

    Raises:
        CaseNotCreatedError: the scenario or its version no longer exists.
    """
    try:
        scenario = load_scenario(trial.scenario, trial.scenario_version)
    except KeyError:
        raise CaseNotCreatedError(f"The scenario {trial.scenario} no longer exists.") from None
    if scenario.version != trial.scenario_version:
        raise CaseNotCreatedError(f"The scenario {trial.scenario} has changed since trial {trial.pk} was run.")
    return scenario


def _is_of_playground(trial: Trial) -> bool:
    """Return whether the scenario of the trial is a conversation of the playground."""
    return Case.objects.filter(slug=trial.scenario, set__kind=CaseSet.Kind.DRAFT).exists()


def _choose_note(trial: Trial, tool_steps: list[StepWithDetails]) -> str:
    """Return the note of a draft whose expected calls are those of the trial."""
    if not tool_steps:
        return NO_CALL_NOTE.format(id=trial.pk)
    if not _list_calls(tool_steps):
        return UNREADABLE_NOTE.format(id=trial.pk)
    return (PASSED_NOTE if trial.outcome == Trial.Outcome.PASS else FAILED_NOTE).format(id=trial.pk)


def _build_draft_with_calls(title: str, instance: Instance, tool_steps: list[StepWithDetails]) -> CaseDraft:
    """Return the draft of a case with this instance; each tool returns its last successful result in the trial.

    Args:
        title: title of the case.
        instance: instance of the trial's scenario.
        tool_steps: tool steps of the trial.
    """
    messages: list[Message] = [*instance.history, {"role": "user", "content": instance.user_text}]
    results = {
        call["name"]: _build_result(step) for step in tool_steps if (call := _find_call(step)) and _has_result(step)
    }
    tool_names = {tool.name for tool in instance.tools}
    overrides = instance.layer.get("request_overrides") or {}
    return CaseDraft(
        title=title,
        tools=render_json([tool.to_openai() for tool in instance.tools if tool.exposed_to_model]),
        message=render_json(messages) if instance.history else instance.user_text,
        expect=_render_calls(tool_steps),
        system=instance.system,
        results=render_json({name: entry for name, entry in results.items() if name in tool_names}) if results else "",
        turns=instance.layer.get("max_turns"),
        parallel=bool(overrides.get("parallel_tool_calls")),
    )


def _render_calls(tool_steps: list[StepWithDetails]) -> str:
    """Return the calls of the tool steps as an expectation, in JSON; calls that cannot be read are left out.

    Without a tool step, the expectation is NO_CALL; with tool steps but no readable call, it is "".
    """
    calls = _list_calls(tool_steps)
    if tool_steps and not calls:
        return ""
    return render_json(calls[0] if len(calls) == 1 else {"calls": calls} if calls else NO_CALL)


def _list_calls(tool_steps: list[StepWithDetails]) -> list[JsonObject]:
    return [call for step in tool_steps if (call := _find_call(step))]


def _find_call(step: StepWithDetails) -> JsonObject | None:
    """Return the call with its arguments; None if the arguments could not be parsed or the call has no name."""
    arguments, name = step.facts.get("arguments"), step.facts.get("call", {}).get("name")
    return {"name": name, "arguments": arguments} if isinstance(arguments, dict) and isinstance(name, str) else None


def _has_result(step: StepWithDetails) -> bool:
    return bool(step.facts.get("envelope", {}).get("ok"))


def _build_result(step: StepWithDetails) -> JsonObject:
    return {"fixed": step.facts["envelope"].get("data", {})}
