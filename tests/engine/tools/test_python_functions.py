from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from toolbench.engine.errors import PlanError, ToolArgumentError
from toolbench.engine.tools.python_functions import PythonTools, python_tool, to_plain_value
from toolbench.engine.tools.validation import check_schema


class Kind(Enum):
    SUN = "sun"


class Weather(BaseModel):
    kind: Kind
    day: date


@dataclass
class Pair:
    one: int


def add(a: int, b: int = 1) -> int:
    """Adds two numbers."""
    return a + b


async def wait(seconds: float) -> None:
    """Waits."""


def test_python_tool_takes_name_and_docstring_of_function() -> None:
    tool = python_tool(add)

    assert (tool.definition.name, tool.definition.description) == ("add", "Adds two numbers.")
    assert tool.call({"a": 2}) == 3
    check_schema(tool.definition)


def test_python_tool_accepts_name_description_and_limits() -> None:
    tool = python_tool(add, name="plus", description="Sum.", alone=True, timeout_seconds=0.5)

    definition = tool.definition
    assert (definition.name, definition.description, definition.alone) == ("plus", "Sum.", True)
    assert definition.timeout_seconds == 0.5


def test_python_tool_refuses_arguments_before_call() -> None:
    with pytest.raises(ToolArgumentError, match=r"\$\.a: Missing required argument"):
        python_tool(add).call({"b": 2})


@pytest.mark.parametrize("candidate", [int, max, 3])
def test_python_tool_refuses_object_without_signature(candidate: Any) -> None:
    with pytest.raises(PlanError, match="cannot be a tool"):
        python_tool(candidate)


def test_python_tools_keep_order_and_refuse_repeated_name() -> None:
    assert [tool.name for tool in PythonTools.from_functions(wait, add).registry.definitions] == ["wait", "add"]
    with pytest.raises(PlanError, match="used more than once: add"):
        PythonTools.from_functions(add, python_tool(wait, name="add"))


def test_python_tool_is_async_only_for_async_function() -> None:
    assert python_tool(wait).is_async
    assert not python_tool(add).is_async


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Weather(kind=Kind.SUN, day=date(2026, 1, 2)), {"kind": "sun", "day": "2026-01-02"}),
        ([Pair(1), {"k": Kind.SUN}], [{"one": 1}, {"k": "sun"}]),
        ({"a": [1, None, "x"]}, {"a": [1, None, "x"]}),
        ((1, 2), [1, 2]),
    ],
)
def test_to_plain_value_converts_models_enums_and_dataclasses(value: object, plain: object) -> None:
    assert to_plain_value(value) == plain


def test_to_plain_value_keeps_value_that_json_cannot_represent() -> None:
    unwritable = object()

    assert to_plain_value({"it": unwritable}) == {"it": unwritable}
    assert to_plain_value(b"\xff") == b"\xff"


class Scales:
    async def __call__(self, grams: int) -> int:
        """Weighs."""
        return grams


class Adder:
    """Adds one."""

    def __call__(self, to: int) -> int:
        return to + 1


def test_python_tool_uses_class_docstring_if_call_has_none() -> None:
    assert python_tool(Adder(), name="adder").definition.description == "Adds one."
    assert python_tool(partial(Adder(), to=1), name="adder").definition.description == "Adds one."


def test_python_tool_accepts_partial_object_and_model_with_a_name() -> None:
    tools = [python_tool(candidate, name="tool") for candidate in (partial(add, b=5), Scales(), Weather)]

    assert [tool.definition.description for tool in tools[:2]] == ["Adds two numbers.", "Weighs."]
    assert [tool.is_async for tool in tools] == [False, True, False]
    assert tools[0].call({"a": 2}) == 7
    assert tools[2].call({"kind": "sun", "day": "2026-01-02"}) == Weather(kind=Kind.SUN, day=date(2026, 1, 2))
    assert [list(tool.definition.parameters["properties"]) for tool in tools] == [
        ["a", "b"],
        ["grams"],
        ["kind", "day"],
    ]
    with pytest.raises(PlanError, match="give it one"):
        python_tool(Scales())


def test_python_tool_refuses_invalid_name() -> None:
    with pytest.raises(PlanError, match="'add two' cannot name a tool"):
        python_tool(add, name="add two")
    with pytest.raises(PlanError, match="<lambda>"):
        python_tool(lambda: None)
