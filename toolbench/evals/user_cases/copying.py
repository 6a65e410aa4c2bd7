"""Copies of built-in scenarios as test cases.

A copy has the texts, tools and values of one instance, and nothing in it is drawn. A scenario that is judged by a
program, such as the SQL agent, cannot be copied.
"""

from collections.abc import Mapping
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.evals.scenarios.control import ControlScenario
from toolbench.evals.scenarios.intent import IntentScenario
from toolbench.evals.scenarios.packs import PackScenario
from toolbench.evals.scenarios.state import StateScenario
from toolbench.evals.scenarios.tools import load_distractors
from toolbench.evals.scenarios.weather import WeatherScenario
from toolbench.evals.types import Instance, Scenario
from toolbench.evals.user_cases.definition import TOOL_TIMEOUT, UserCase
from toolbench.evals.user_cases.matchers import OPTIONAL, TYPE, TYPES
from toolbench.evals.user_cases.parse import parse_case

NOT_COPIED_REASON = "a program judges it, and a test case consists of data only"


class ScenarioNotCopiedError(Exception):
    """A scenario that cannot be copied as a test case; the message is a sentence for users."""


def is_copyable(scenario: Scenario) -> bool:
    """Return whether the scenario can be copied as a test case."""
    return isinstance(scenario, (StateScenario, ControlScenario, WeatherScenario, IntentScenario, PackScenario))


def copy_scenario(scenario: Scenario, instance: Instance) -> UserCase:
    """Return the test case of an instance of a built-in scenario.

    Raises:
        ScenarioNotCopiedError: The scenario cannot be copied.
    """
    if isinstance(scenario, StateScenario):
        parts = _copy_state(scenario, instance)
    elif isinstance(scenario, ControlScenario):
        parts = _copy_control(scenario, instance)
    elif isinstance(scenario, (WeatherScenario, IntentScenario)):
        parts = _copy_single_call(scenario, instance)
    elif isinstance(scenario, PackScenario):
        parts = _copy_task(scenario, instance)
    else:
        raise ScenarioNotCopiedError(f"{scenario.slug} cannot be copied as a test case: {NOT_COPIED_REASON}.")
    return parse_case(_copy_request(instance) | parts)


def _copy_request(instance: Instance) -> JsonObject:
    system = [{"role": "system", "content": instance.system}] if instance.system else []
    overrides = instance.layer.get("request_overrides", {})
    timeout = next((tool.timeout_seconds for tool in instance.tools if tool.timeout_seconds), None)
    return {
        "messages": [*system, *instance.history, {"role": "user", "content": instance.user_text}],
        "tools": [tool.to_openai() for tool in instance.tools if tool.exposed_to_model],
        "further": [message.text for message in instance.further],
        "turns": instance.layer.get("max_turns"),
        "parallel": bool(overrides.get("parallel_tool_calls")),
        "settings": {
            **{name: value for name, value in instance.layer.items() if name not in ("request_overrides", "max_turns")},
            **{name: value for name, value in overrides.items() if name == "max_tokens"},
            **({TOOL_TIMEOUT: timeout} if timeout else {}),
        },
    }


def _copy_state(scenario: StateScenario, instance: Instance) -> JsonObject:
    values = instance.values
    return {
        "results": _build_results(values.get("answers", {})),
        "initial": {"draft": {"big": "x" * scenario.big_letters} if scenario.big_letters else {}},
        "workspace": {"id": values["workspace_id"], "writable": values["key"]},
        "behaviour": scenario.behaviour,
        "expect": {"state": {f"/draft/{values['key']}": values["value"]}, "checks": [{"answer_given": True}]},
    }


def _copy_control(scenario: ControlScenario, instance: Instance) -> JsonObject:
    is_done_task = scenario.check == "done"
    check: JsonObject = {"answer_done": True} if is_done_task else {"answer_names": instance.values["sum"]}
    return {
        "results": _build_distractor_results(instance),
        "control": True,
        "expect": {"no_call": True, "checks": [check]},
    }


def _copy_single_call(scenario: WeatherScenario | IntentScenario, instance: Instance) -> JsonObject:
    [call] = scenario.build_expected_calls(instance).calls
    workspace = scenario.open(instance)
    answer = workspace.call(call.tool, dict(call.arguments or {}), "")
    is_loose = isinstance(scenario, WeatherScenario)
    return {
        "results": _build_distractor_results(instance) | _build_results({call.tool: answer}),
        "expect": {"name": call.tool, "arguments": call.arguments, "more": True, "loose": is_loose},
    }


def _copy_task(scenario: PackScenario, instance: Instance) -> JsonObject:
    values = instance.values
    results = _build_results({tool.name: {"done": True} for tool in instance.tools} | dict(values["answers"]))
    for fault in scenario.faults:
        results[fault["tool"]]["fault"] = {name: value for name, value in fault.items() if name != "tool"}
    checks: list[JsonObject] = [{"answer_names": text} for text in values["reply"]]
    checks += [{"answer_asks": True}] if scenario.question else []
    checks += [{"together": len(values["calls"])}] if scenario.together else []
    expect: JsonObject = {"calls": [_build_call(call) for call in values["calls"]], "checks": checks}
    if not values["calls"]:
        expect = {"no_call": True, "checks": checks or [{"answer_given": True}]}
    return {"results": results, "expect": expect}


def _build_call(call: JsonObject) -> JsonObject:
    any_value = {TYPE: list(TYPES), OPTIONAL: True}  # also matches a missing argument
    ignored = {name: any_value for name in call.get("any", ())}
    return {"name": call["tool"], "arguments": {**call["arguments"], **ignored}, "loose": True}


def _build_distractor_results(instance: Instance) -> JsonObject:
    offered = {tool.name for tool in instance.tools}
    return _build_results({name: answer for name, (_, answer) in load_distractors().items() if name in offered})


def _build_results(answers: Mapping[str, Any]) -> JsonObject:
    return {name: {"fixed": answer} for name, answer in answers.items()}
