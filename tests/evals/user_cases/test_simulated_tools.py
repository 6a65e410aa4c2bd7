from contextlib import suppress
from typing import Any

import pytest

from toolbench.engine.events import Outcome
from toolbench.engine.loop.result_envelope import build_envelope
from toolbench.evals.user_cases.simulated_tools import SimulatedTools, build_sample, describe_results

RESULTS = {
    "look": {"fixed": {"sky": "clear"}},
    "cancel": {"fixed": "ok", "set": {"/orders/{id}/state": "$why"}},
    "count": {"generated": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
    "refuse": {"error": "not today"},
}


def test_simulated_tools_return_arguments_unless_case_has_result() -> None:
    tools = SimulatedTools(RESULTS, {})
    assert tools.call("other", {"a": 1}, "c") == {"simulated": True, "arguments": {"a": 1}}
    assert tools.call("look", {}, "c") == {"sky": "clear"}
    assert tools.call("count", {}, "c") == {"n": 1}
    refused = tools.call("refuse", {}, "c")
    assert isinstance(refused, dict)
    assert (refused["ok"], refused["errors"][0]["message"]) == (False, "not today")


@pytest.mark.parametrize(
    ("entry", "description", "state"),
    [
        ({"error": "no", "set": {"/x": 1}}, "refuses every call", {}),
        ({"error": "no", "fault": {"kind": "crashes"}}, "refuses every call", {}),
        ({"fixed": "ok", "set": {"/x": 1}}, "a fixed result, and changes the state", {"x": 1}),
    ],
)
def test_describe_results_names_only_what_a_call_does(
    entry: dict[str, Any], description: str, state: dict[str, Any]
) -> None:
    tools = SimulatedTools({"f": entry}, {})
    tools.call("f", {}, "c")
    assert (describe_results({"f": entry}, "f"), tools.snapshot()) == (description, state)


def test_simulated_tools_effects_change_only_their_own_state() -> None:
    initial = {"orders": {"17": {"state": "open"}}}
    tools = SimulatedTools(RESULTS, initial)
    tools.call("cancel", {"id": 17, "why": "late"}, "c")
    assert tools.snapshot()["orders"]["17"]["state"] == "late"
    assert initial == {"orders": {"17": {"state": "open"}}}


def test_simulated_tools_keep_braces_in_argument_that_fills_pointer() -> None:
    tools = SimulatedTools(RESULTS, {"orders": {}})
    tools.call("cancel", {"id": "{why}/~{none}", "why": "late"}, "c")
    assert tools.snapshot() == {"orders": {"{why}/~{none}": {"state": "late"}}}


def test_simulated_tools_later_change_of_state_keeps_arguments() -> None:
    arguments = {"order": {"id": 17}}
    tools = SimulatedTools({"save": {"set": {"/order": "$order", "/order/state": "new"}}}, {})
    tools.call("save", arguments, "c")
    assert tools.snapshot() == {"order": {"id": 17, "state": "new"}}
    assert arguments == {"order": {"id": 17}}


@pytest.mark.parametrize(
    ("schema", "sample"),
    [
        ({"enum": {"a": 1}}, "text"),
        ({"enum": 5, "type": "integer"}, 1),
        ({"properties": ["n"]}, {}),
        ({"type": "object", "properties": None}, {}),
        ({"enum": [2, 3]}, 2),
    ],
)
def test_build_sample_ignores_malformed_keywords(schema: Any, sample: Any) -> None:
    assert build_sample(schema) == sample


@pytest.mark.parametrize(
    "value",
    [{"ok": True, "messages": [1, 2]}, {"ok": "yes", "n": 1}, {"ok": True, "tool_name": "other"}, {"n": 1}],
)
@pytest.mark.parametrize("kind", ["fixed", "template"])
def test_simulated_tools_answer_with_any_members_is_data(kind: str, value: Any) -> None:
    answer = SimulatedTools({"look": {kind: value}}, {}).call("look", {}, "c")
    envelope = build_envelope(Outcome(answer), "look")
    assert (envelope.ok, envelope.tool_name, envelope.data) == (True, "look", value)


ORDERS = {"orders": [{"id": 17, "status": "open"}, {"id": 18}]}


@pytest.mark.parametrize(
    ("pointer", "orders"),
    [
        ("/orders/0/status", [{"id": 17, "status": "late"}, {"id": 18}]),
        ("/orders/{n}/more/note", [{"id": 17, "status": "open"}, {"id": 18, "more": {"note": "late"}}]),
        ("/orders/{n}", [{"id": 17, "status": "open"}, "late"]),
    ],
)
def test_simulated_tools_set_changes_item_of_a_list(pointer: str, orders: Any) -> None:
    tools = SimulatedTools({"change": {"fixed": 1, "set": {pointer: "$why"}}}, ORDERS)
    assert tools.call("change", {"n": 1, "why": "late"}, "c") == 1
    assert tools.snapshot() == {"orders": orders}


@pytest.mark.parametrize("pointer", ["/orders/2/status", "/orders/2", "/orders/-", "/orders/status"])
def test_simulated_tools_set_without_item_refuses_the_call(pointer: str) -> None:
    tools = SimulatedTools({"change": {"fixed": 1, "set": {"/changed": True, pointer: "late"}}}, ORDERS)
    answer: Any = tools.call("change", {}, "c")
    assert (answer["ok"], answer["errors"][0]["code"]) == (False, "STATE_NOT_FOUND")
    assert "is no index of an array of 2" in answer["errors"][0]["message"]
    assert tools.snapshot() == ORDERS


PAID = {"fixed": 1, "set": {"/paid": True}}


@pytest.mark.parametrize("kind", ["busy", "crashes", "malformed"])
def test_simulated_tools_call_failed_by_a_fault_changes_no_state(kind: str) -> None:
    tools = SimulatedTools({"pay": PAID | {"fault": {"kind": kind}}}, {"paid": False})
    with suppress(RuntimeError):
        tools.call("pay", {}, "")
    assert tools.snapshot() == {"paid": False}
    assert tools.call("pay", {}, "") == 1
    assert tools.snapshot() == {"paid": True}


def test_simulated_tools_slow_tool_changes_state_before_it_answers() -> None:
    tools = SimulatedTools({"pay": PAID | {"fault": {"kind": "slow", "seconds": 9}}}, {})
    tools.call("pay", {}, "")
    assert tools.snapshot() == {"paid": True}
