"""Tests of the calls that a simulated model guesses for unknown tools, from the words of the question."""

from typing import Any

import pytest

from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.validation import list_schema_errors
from toolbench.providers.simulated.chat_request import parse_chat_request
from toolbench.providers.simulated.knowledge.argument_guess import guess_arguments
from toolbench.providers.simulated.script import build_script

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
LINE = {"type": "object", "properties": {"sku": TEXT, "count": WHOLE}, "required": ["sku"]}


def build_tool(name: str, description: str, required: str, /, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required.split()}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [
    build_tool("cancel_order", "Cancels an order.", "order", order=TEXT, note=TEXT),
    build_tool("get_time", "The time of a city.", "city", city=TEXT),
    build_tool("get_weather", "The weather of a city.", "city", city=TEXT, unit={"enum": ["celsius", "fahrenheit"]}),
    build_tool(
        "bookTable", "Books a table.", "people time name smoking",
        people=WHOLE | {"maximum": 9}, time=TEXT, name=TEXT, smoking={"type": "boolean"},
    ),
    build_tool(
        "create_invoice", "", "customer_id amount due currency lines state",
        customer_id=TEXT | {"pattern": "^C-\\d+$"}, amount={"type": "number"}, due=TEXT | {"format": "date"},
        currency={"enum": ["EUR", "USD"]}, lines={"type": "array", "items": LINE, "minItems": 1},
        state={"type": ["string", "null"], "default": "open", "maxLength": 4},
    ),
]  # fmt: skip


def guess_call(question: str, **more: Any) -> tuple[str, dict[str, Any]] | None:
    body = {"messages": [{"role": "user", "content": question}], "tools": TOOLS, **more}
    script = build_script(parse_chat_request(body))
    return (script[0][0].name, script[0][0].arguments) if script else None


@pytest.mark.parametrize(
    ("question", "name", "arguments"),
    [
        ("Please cancel order 17, it is late.", "cancel_order", {"order": "17"}),
        ("Cancel order 17 with the note “too late”.", "cancel_order", {"order": "17", "note": "too late"}),
        ("How is the weather in New York in Fahrenheit?", "get_weather", {"city": "New York", "unit": "fahrenheit"}),
        (
            "Book a table for Mara Stein at 19:30 for 4 people, not smoking.", "bookTable",
            {"people": 4, "time": "19:30", "name": "Mara Stein", "smoking": False},
        ),
        (
            "Invoice customer C-42 over 99.50 USD, due 2026-03-01, sku A-7.", "create_invoice",
            {
                "customer_id": "C-42", "amount": 99.5, "due": "2026-03-01", "currency": "USD",
                "lines": [{"sku": "A-7"}], "state": "open",
            },
        ),
    ],
)  # fmt: skip
def test_build_script_calls_the_tool_that_shares_most_words(
    question: str, name: str, arguments: dict[str, Any]
) -> None:
    assert guess_call(question) == (name, arguments)


def test_build_script_fills_required_arguments_for_short_question() -> None:
    for question in ("Cancel!", "The weather?", "A table", "An invoice of 3000 \N{GRINNING FACE}"):
        call = guess_call(question)
        assert call is not None, question
        function = next(item["function"] for item in TOOLS if item["function"]["name"] == call[0])
        checked = {key: value for key, value in call[1].items() if key != "customer_id"}  # its pattern needs a number
        definition = function["parameters"] | {
            "required": [item for item in function["parameters"]["required"] if item in checked]
        }
        assert not list_schema_errors(ToolDefinition(call[0], parameters=definition), checked)
        assert set(function["parameters"]["required"]) <= set(call[1])


def test_build_script_calls_no_tool_that_shares_no_word() -> None:
    assert guess_call("Hi, how are you?") is None
    assert guess_call("取消订单 17") is None


def test_build_script_accepts_a_senseless_schema() -> None:
    schemas: tuple[dict[str, Any], ...] = (
        {"a": {"$ref": "#/$defs/a"}}, {"a": None}, {"a": {"enum": 3, "pattern": "("}}, {"": {"type": []}},
    )  # fmt: skip
    for properties in schemas:
        tools = [build_tool("cancel_order", "", " ".join(properties), **properties)]
        tools[0]["function"]["parameters"]["$defs"] = {"a": {"$ref": "#/$defs/a"}}
        body = {"messages": [{"role": "user", "content": "cancel it"}], "tools": tools}
        assert build_script(parse_chat_request(body))


@pytest.mark.parametrize("required", [None, 5, "a", [["a"]]])
def test_build_script_accepts_a_senseless_list_of_required_names(required: object) -> None:
    tool = build_tool("get_time", "The time of a city.", "", city=TEXT)
    tool["function"]["parameters"]["required"] = required
    call = guess_call("The time in Oslo, please.", tools=[tool])
    assert call is not None
    assert call[0] == "get_time"


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        ("auto", None),
        ("none", None),
        ("required", "cancel_order"),
        ({"type": "function", "function": {"name": "get_time"}}, "get_time"),
    ],
)
def test_build_script_makes_the_call_that_tool_choice_requires(choice: object, name: str | None) -> None:
    call = guess_call("Hello!", tool_choice=choice)
    assert (call[0] if call else None) == name


def test_guess_arguments_leaves_the_values_of_an_invalid_list_unused() -> None:
    levels = {"type": "array", "items": WHOLE, "maxItems": 1}
    tool = build_tool("t", "", "levels amount", levels=levels, amount=WHOLE)["function"]
    assert guess_arguments(tool, "Please use 3 and 5 here") == {"levels": [3], "amount": 5}
