from typing import Any

import pytest

from toolbench.engine.constraints.allowed_answers import is_final_answer_allowed, select_tools
from toolbench.engine.tools.choice import ToolChoice
from toolbench.engine.types import JsonObject

TOOLS: list[JsonObject] = [{"type": "function", "function": {"name": name}} for name in "abc"]
NAMED_TOOLS = [{"type": "function", "function": {"name": "b"}}, {"type": "function", "name": "c"}, {"name": []}, 7]


@pytest.mark.parametrize(
    ("tool_choice", "names", "is_final_allowed"),
    [
        ("auto", "abc", True),
        ("none", "abc", True),
        ("required", "abc", False),
        ("any", "abc", False),
        (ToolChoice.named("b").to_openai(), "b", False),
        ({"type": "tool", "name": "b"}, "b", False),
        ({"type": "function", "function": {"name": "x"}}, "abc", False),
        ({"type": "auto"}, "abc", True),
        ({"type": "any"}, "abc", False),
        ({"type": []}, "abc", False),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": NAMED_TOOLS}}, "bc", True),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": NAMED_TOOLS}}, "bc", False),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": "b"}}, "abc", True),
    ],
)
def test_tool_choice_decides_tools_and_final_answer(tool_choice: Any, names: str, is_final_allowed: bool) -> None:
    assert "".join(tool["function"]["name"] for tool in select_tools(TOOLS, tool_choice)) == names
    assert is_final_answer_allowed(tool_choice) == is_final_allowed
