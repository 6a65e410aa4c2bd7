"""Tests of the options of a test case: further messages, group, control, behaviour, workspace, settings."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evals.records import build_calling_turn, build_ended, build_text_turn, run_tool
from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.policy.settings import resolve_policy
from toolbench.evals.scenarios.behaviours import BEHAVIOURS
from toolbench.evals.user_cases.definition import case_to_json
from toolbench.evals.user_cases.options import BEHAVIOUR_LABELS, SETTINGS, build_settings_layer
from toolbench.evals.user_cases.parse import InvalidCaseError, parse_case
from toolbench.evals.user_cases.scenario import UserCaseScenario

TOOLS = [{"name": "cancel", "parameters": {"type": "object"}}]
FULL = {
    "further": ["And 18.", "Thanks."],
    "group": "billing",
    "behaviour": "parallel_turn",
    "workspace": {"id": "w1", "writable": "foo"},
    "settings": {"max_tokens": 64, "tool_timeout_seconds": 0.5, "tool_failure_policy": "tolerated"},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def build_document(**rest: Any) -> dict[str, Any]:
    return {"tools": TOOLS, "messages": "Cancel order 17.", "expect": {"state": {"/draft/foo": "bar"}}, **rest}


def build_scenario(**rest: Any) -> UserCaseScenario:
    return UserCaseScenario("own-x", 1, "X", parse_case(build_document(**rest)))


@pytest.mark.parametrize(
    ("expect", "min_requests"),
    [({"state": {"/draft/foo": "bar"}}, 2), ({"no_call": True}, 1), ({"checks": [{"answer_given": True}]}, 1)],
)
def test_case_with_workspace_needs_second_request_only_for_a_call(expect: dict[str, Any], min_requests: int) -> None:
    assert build_scenario(workspace={"id": "w", "writable": "foo"}, expect=expect).min_requests == min_requests


def test_parse_case_options_reach_the_instance_and_survive_json() -> None:
    scenario = build_scenario(**FULL)
    instance = scenario.draw_instance(0)
    assert (scenario.group, scenario.control, scenario.methods) == ("own_billing", False, ("native", "template"))
    assert [message.text for message in instance.further] == ["And 18.", "Thanks."]
    assert scenario.min_requests == 4
    assert instance.layer == {
        "tool_use_mode": "relaxed", "tool_failure_policy": "tolerated", "request_overrides": {"max_tokens": 64},
    }  # fmt: skip
    assert [tool.timeout_seconds for tool in instance.tools] == [0.5]
    assert parse_case(case_to_json(scenario.case)) == scenario.case


def test_behaviour_labels_cover_every_behaviour() -> None:
    assert list(BEHAVIOUR_LABELS) == list(BEHAVIOURS)


@pytest.mark.parametrize("name", SETTINGS)
def test_build_settings_layer_is_accepted_by_the_policy(name: str) -> None:
    value = {"tool_failure_policy": "fatal", "tool_use_mode": "disabled"}.get(name, 7)
    assert build_scenario(settings={name: value}).case.settings == {name: value}
    resolve_policy([("scenario", build_settings_layer({name: value}))])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"further": "Hi"}, "Further messages must be a list of at most 20 texts."),
        ({"further": ["Hi", " "]}, "A further message must be a text that is not blank."),
        ({"further": ["x"] * 21}, "Further messages must be a list of at most 20 texts."),
        ({"group": "Big Group"}, "A group must have 1 to 16 lower-case letters, digits and underscores."),
        ({"behaviour": "os.system"}, "behaviour must be one of mixed_turn"),
        ({"workspace": {"id": "x"}}, "A workspace must be an object with id and writable."),
        ({"workspace": {"id": "x", "writable": "a/b"}}, "writable must be a text of 1 to 80 characters"),
        ({"settings": {"api_key": "x"}}, "There is no setting api_key"),
        ({"settings": {"max_tokens": True}}, "max_tokens takes a whole number"),
        ({"settings": {"tool_use_mode": "enforced"}}, "tool_use_mode takes relaxed or disabled"),
        ({"control": True}, "A control expects no call"),
        ({"results": {"cancel": {"fault": {"kind": "explodes"}}}}, "fault must be an object whose kind is one of busy"),
        ({"results": {"cancel": {"fault": {"kind": "slow"}}}}, "slow needs seconds."),
        ({"results": {"cancel": {"fault": {"kind": "slow", "seconds": 1e9}}}}, "seconds takes a number of seconds"),
        (
            {"results": {"cancel": {"fault": {"kind": "busy", "rows": 3}}}},
            "A fault of kind busy has no rows; it may have times.",
        ),
        ({"results": {"cancel": {"fixed": 1, "fault": None}}}, "fault must be an object whose kind is one of busy"),
        (
            {"results": {"cancel": {"error": "no", "fault": {"kind": "busy"}}}},
            "A tool that always refuses has no fault",
        ),
        ({"expect": {"checks": [{"together": 1}]}}, "together takes a whole number from 2"),
        (
            {"workspace": {"id": "x", "writable": "foo"}, "initial": {"facts": {"a": 1}}},
            "Remove facts from initial: a workspace sets",
        ),
        ({"workspace": {"id": "x", "writable": "foo"}, "initial": {"draft": 3}}, "The draft of a workspace"),
        ({"results": {"cancel": {"template": "{x}"}}}, "{x} cannot be substituted"),
    ],
)
def test_parse_case_invalid_option_is_refused_with_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidCaseError) as caught:
        parse_case(build_document(**changes))
    assert sentence in str(caught.value)


@given(st.sampled_from([*FULL, "control", "results"]), JSON)
def test_parse_case_random_option_is_refused_or_runs(name: str, value: Any) -> None:
    call_if_accepted(name, value)


def call_if_accepted(name: str, value: Any) -> None:
    try:
        case = parse_case(build_document(**{name: value}))
    except InvalidCaseError:
        return
    scenario = UserCaseScenario("own-x", 1, "X", case)
    with suppress(RuntimeError, ToolArgumentError):  # raised by simulated faults
        scenario.open(scenario.draw_instance(0)).call("cancel", {}, "")


@given(JSON)
def test_parse_case_random_result_or_fault_is_refused_or_runs(value: Any) -> None:
    for results in ({"cancel": value}, {"cancel": {"fault": value}}, {"cancel": {"fixed": 1, "fault": value}}):
        call_if_accepted("results", results)


def test_user_case_scenario_judges_workspace_of_the_case_study() -> None:
    scenario = build_scenario(
        workspace={"id": "w1", "writable": "foo"}, initial={"draft": {"old": 1}}, behaviour="id_left_out"
    )
    instance = scenario.draw_instance(0)
    workspace = scenario.open(instance)
    change = {"ops": [{"op": "set", "path": "/draft/foo", "value": "bar"}]}
    refused = run_tool(workspace, "state_patch", {"ops": [{"op": "set", "path": "/draft/old", "value": "bar"}]})
    result = run_tool(workspace, "state_patch", change)
    record = build_ended(
        build_calling_turn(0, refused), build_calling_turn(1, result), build_text_turn(2, "The draft is changed.")
    )
    verdict = scenario.judge(instance, record, workspace)
    assert (verdict.outcome, verdict.behaviour_seen) == ("pass", True)
    assert workspace.snapshot()["draft"] == {"old": 1, "foo": "bar"}


def test_user_case_scenario_missing_behaviour_fails() -> None:
    scenario = build_scenario(
        behaviour="parallel_turn", results={"cancel": {"fixed": "ok", "set": {"/draft/foo": "bar"}}}
    )
    instance = scenario.draw_instance(0)
    workspace = scenario.open(instance)
    record = build_ended(build_calling_turn(0, run_tool(workspace, "cancel", {})), build_text_turn(1, "Done."))
    verdict = scenario.judge(instance, record, workspace)
    assert (verdict.outcome, verdict.failure_class) == ("fail", "not_parallel")


def test_user_case_scenario_control_passes_without_a_call() -> None:
    expect = {"no_call": True, "checks": [{"answer_asks": True}, {"answer_names": "17"}, {"answer_given": True}]}
    control = {"messages": "Hi", "tools": [], "expect": expect, "control": True}
    scenario = UserCaseScenario("own-x", 1, "X", parse_case(control))
    instance = scenario.draw_instance(0)
    assert (scenario.control, instance.tools) == (True, ())
    for text, outcome in [("Is it 17?", "pass"), ("Is it 171?", "fail"), ("17.", "fail")]:
        verdict = scenario.judge(instance, build_ended(build_text_turn(0, text)), scenario.open(instance))
        assert verdict.outcome == outcome


def test_user_case_scenario_loose_call_ignores_case_space_and_null() -> None:
    call = {"name": "cancel", "arguments": {"who": "Ada  Lovelace", "tags": ["A"]}}
    for loose, outcome in [(True, "pass"), (False, "fail")]:
        scenario = build_scenario(expect={**call, "loose": loose}, turns=1)
        instance = scenario.draw_instance(0)
        workspace = scenario.open(instance)
        result = run_tool(workspace, "cancel", {"who": "ada lovelace", "tags": ["a"], "more": None})
        record = build_ended(build_calling_turn(0, result), build_text_turn(1, "Done."))
        assert scenario.judge(instance, record, workspace).outcome == outcome
