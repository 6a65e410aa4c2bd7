import pytest

from toolbench.engine.errors import PlanError
from toolbench.engine.policy.limits import check_tool_set, get_max_calls
from toolbench.engine.policy.settings import Policy
from toolbench.engine.strict_json import encode_json
from toolbench.engine.tools.definitions import ToolDefinition

TOOLS = [ToolDefinition(f"tool_{n}", "d" * n).to_openai() for n in range(8)]


def test_check_tool_set_accepts_set_at_both_limits() -> None:
    size = len(encode_json(TOOLS))
    check_tool_set(TOOLS, Policy(max_tool_definitions_count=8, max_tool_definitions_bytes=size))


def test_check_tool_set_refuses_too_many_tools() -> None:
    with pytest.raises(PlanError, match="8 tools; at most 7"):
        check_tool_set(TOOLS, Policy(max_tool_definitions_count=7))


def test_check_tool_set_refuses_too_large_set_and_names_five_largest() -> None:
    with pytest.raises(PlanError) as caught:
        check_tool_set(TOOLS, Policy(max_tool_definitions_bytes=100))
    largest = str(caught.value).split("the largest: ")[1]
    assert [part.split()[0] for part in largest.split(", ")] == ["tool_7", "tool_6", "tool_5", "tool_4", "tool_3"]


def test_check_tool_set_refuses_repeated_name() -> None:
    with pytest.raises(PlanError, match="tool_1"):
        check_tool_set([*TOOLS, TOOLS[1]], Policy())


@pytest.mark.parametrize(
    ("max_calls", "options", "expected"),
    [
        (None, {}, None),
        (None, {"parallel_tool_calls": True}, None),
        (None, {"parallel_tool_calls": False}, 1),
        (None, {"parallel_tool_calls": 0}, None),
        (3, {"parallel_tool_calls": False}, 3),
    ],
)
def test_get_max_calls_is_one_if_parallel_calls_are_off_without_limit(
    max_calls: int | None, options: dict[str, object], expected: int | None
) -> None:
    assert get_max_calls(Policy(max_tool_calls_per_turn=max_calls), options) == expected


def test_get_max_calls_with_serial_calls_is_always_one() -> None:
    policy = Policy(serial_calls=True, max_tool_calls_per_turn=5)
    assert get_max_calls(policy, {"parallel_tool_calls": True}) == 1
