from contextlib import suppress

import pytest

from toolbench.evals.user_cases.simulated_tools import SimulatedTools

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


def test_simulated_tools_effects_change_only_their_own_state() -> None:
    initial = {"orders": {"17": {"state": "open"}}}
    tools = SimulatedTools(RESULTS, initial)
    tools.call("cancel", {"id": 17, "why": "late"}, "c")
    assert tools.snapshot()["orders"]["17"]["state"] == "late"
    assert initial == {"orders": {"17": {"state": "open"}}}


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
