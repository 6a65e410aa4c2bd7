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


def test_a_function_is_a_tool_under_its_own_name_and_words() -> None:
    tool = python_tool(add)

    assert (tool.definition.name, tool.definition.description) == ("add", "Adds two numbers.")
    assert tool.call({"a": 2}) == 3
    check_schema(tool.definition)


def test_name_words_and_limits_can_be_given() -> None:
    tool = python_tool(add, name="plus", description="Sum.", alone=True, timeout_seconds=0.5)

    definition = tool.definition
    assert (definition.name, definition.description, definition.alone) == ("plus", "Sum.", True)
    assert definition.timeout_seconds == 0.5


def test_arguments_are_refused_before_the_function_is_called() -> None:
    with pytest.raises(ToolArgumentError, match=r"\$\.a: Missing required argument"):
        python_tool(add).call({"b": 2})


@pytest.mark.parametrize("thing", [int, max, 3])
def test_what_has_no_signature_is_refused_in_words(thing: Any) -> None:
    with pytest.raises(PlanError, match="cannot be a tool"):
        python_tool(thing)


def test_a_set_offers_its_tools_in_order_and_each_name_once() -> None:
    assert [tool.name for tool in PythonTools.of(wait, add).registry.definitions] == ["wait", "add"]
    with pytest.raises(PlanError, match="named twice: add"):
        PythonTools.of(add, python_tool(wait, name="add"))


def test_async_functions_are_known_as_such() -> None:
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
def test_values_are_written_out_as_json_holds_them(value: object, plain: object) -> None:
    assert to_plain_value(value) == plain


def test_a_value_that_json_cannot_hold_stays_as_it_is() -> None:
    nothing_json_knows = object()

    assert to_plain_value({"it": nothing_json_knows}) == {"it": nothing_json_knows}
    assert to_plain_value(b"\xff") == b"\xff"


class Scales:
    async def __call__(self, grams: int) -> int:
        """Weighs."""
        return grams


class Adder:
    """Adds one."""

    def __call__(self, to: int) -> int:
        return to + 1


def test_an_object_is_described_by_itself_where_its_call_is_not() -> None:
    assert python_tool(Adder(), name="adder").definition.description == "Adds one."


def test_partials_objects_and_models_are_tools_under_a_given_name() -> None:
    made = [python_tool(thing, name="made") for thing in (partial(add, b=5), Scales(), Weather)]

    assert [tool.definition.description for tool in made[:2]] == ["Adds two numbers.", "Weighs."]
    assert [tool.is_async for tool in made] == [False, True, False]
    assert made[0].call({"a": 2}) == 7
    assert made[2].call({"kind": "sun", "day": "2026-01-02"}) == Weather(kind=Kind.SUN, day=date(2026, 1, 2))
    assert [list(tool.definition.parameters["properties"]) for tool in made] == [["a", "b"], ["grams"], ["kind", "day"]]
    with pytest.raises(PlanError, match="give it one"):
        python_tool(Scales())


def test_python_tool_with_a_name_that_is_no_identifier_is_refused() -> None:
    with pytest.raises(PlanError, match="'add two' cannot name a tool"):
        python_tool(add, name="add two")
    with pytest.raises(PlanError, match="<lambda>"):
        python_tool(lambda: None)
