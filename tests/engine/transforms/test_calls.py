from typing import Any

import pytest

from toolbench.engine.transforms import apply_calls

BLANK = "assistant_tool_calls_arguments_blank_to_empty_object"


def call(arguments: Any) -> dict[str, Any]:
    return {"id": "c1", "function": {"name": "f", "arguments": arguments}}


@pytest.mark.parametrize("blank", ["", " \n\t"])
def test_blank_arguments_become_an_empty_object(blank: str) -> None:
    calls = [call("{}"), call(blank)]
    changed, changes = apply_calls(calls, [BLANK])
    assert changed == [call("{}"), call("{}")]
    assert [(c.path, c.after) for c in changes] == [("$[1].function.arguments", '"{}"')]
    assert calls[1] == call(blank)


@pytest.mark.parametrize("arguments", ["{}", "x", None, {}, []])
def test_other_arguments_stay(arguments: Any) -> None:
    assert apply_calls([call(arguments)], [BLANK]) == ([call(arguments)], ())
