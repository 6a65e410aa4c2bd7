"""Test cases made of tools, and tools made of test cases."""

import asyncio
import json

import pytest

from toolbench.adapters.cases import build_case, build_simulated_tools
from toolbench.adapters.python_tools import ToolRunner
from toolbench.engine.tools.python_functions import PythonTools
from toolbench.evals.user_cases.parse import InvalidCaseError, parse_case

CALL = {"name": "cancel_order", "arguments": {"order": 17}}
REFUSED = {"cancel_order": {"error": "Orders are never cancelled."}}
CANCELLED = {"cancel_order": {"template": {"note": "order {arguments.order}"}, "set": {"/orders/{order}": "cancelled"}}}


def cancel_order(order: int) -> str:
    """Cancel an order."""
    raise AssertionError(f"the real tool ran with {order}")


TOOLS = PythonTools.from_functions(cancel_order)


def test_build_case_has_definitions_messages_and_expectations() -> None:
    document = build_case(TOOLS, "Cancel order 17.", CALL, title="Cancel", results=REFUSED)
    assert document["title"] == "Cancel"
    case = parse_case({key: value for key, value in document.items() if key != "title"})
    assert case.definitions[0].to_openai() == TOOLS.registry.definitions[0].to_openai()
    assert case.messages[-1] == {"role": "user", "content": "Cancel order 17."}
    assert (case.expect.calls[0].name, case.expect.calls[0].arguments) == ("cancel_order", {"order": 17})
    assert case.results == REFUSED


def test_build_case_refuses_an_unknown_expected_tool() -> None:
    with pytest.raises(InvalidCaseError, match="There is no tool delete_order"):
        build_case(TOOLS, "Cancel order 17.", {"name": "delete_order"})


def test_build_simulated_tools_answers_by_template() -> None:
    document = build_case(TOOLS, "Cancel order 17.", CALL, results=CANCELLED) | {"slug": "own-1", "set": "Mine"}
    tools = build_simulated_tools(json.loads(json.dumps(document)))
    runner = ToolRunner(tools.by_name["cancel_order"])
    assert runner.run(order=17) == {"note": "order 17"}
    assert asyncio.run(runner.run_async(order=18)) == {"note": "order 18"}


def test_build_simulated_tools_returns_value_with_member_ok() -> None:
    value = {"ok": True, "messages": [1, 2]}
    document = build_case(TOOLS, "Cancel order 17.", CALL, results={"cancel_order": {"fixed": value}})
    assert ToolRunner(build_simulated_tools(document).by_name["cancel_order"]).run(order=17) == value


def test_build_simulated_tools_refuses_and_delays() -> None:
    refusal = build_case(TOOLS, "Cancel order 17.", CALL, results=REFUSED)
    assert "never cancelled" in str(ToolRunner(build_simulated_tools(refusal).by_name["cancel_order"]).run(order=17))
    slow_result = {"cancel_order": {"fixed": "late", "fault": {"kind": "slow", "seconds": 0.01}}}
    delayed_tools = build_simulated_tools(build_case(TOOLS, "Cancel order 17.", CALL, results=slow_result))
    assert ToolRunner(delayed_tools.by_name["cancel_order"]).run(order=17) == "late"
