import pytest

from toolbench.engine.capabilities.method_choice import choose_method, find_method_obstacle, list_tool_problems
from toolbench.engine.capabilities.record import Capabilities, parse_capabilities
from toolbench.engine.policy.settings import Policy
from toolbench.engine.tools.definitions import ToolDefinition

PATHS = Policy().paths
NO_TOOLS = {"supports_tool_use": False}


@pytest.mark.parametrize(
    ("known", "method"),
    [
        ({}, "native"),
        ({"supports_tool_use": True}, "native"),
        (NO_TOOLS, "text_json"),
        ({"tools_field": "dropped"}, "text_json"),
        ({"tools_field": "refused"}, "text_json"),
        (NO_TOOLS | {"constrained": ("grammar",)}, "constrained"),
        (NO_TOOLS | {"raw_completion": True, "text_format": "hermes"}, "template"),
        (NO_TOOLS | {"raw_completion": True}, "text_json"),
        (NO_TOOLS | {"raw_completion": True, "text_format": "hermes", "constrained": ("grammar",)}, "template"),
        (NO_TOOLS | {"json_stability": "low"}, "text_json"),
        (NO_TOOLS | {"json_stability": "low", "constrained": ("grammar",)}, "constrained"),
    ],
)
def test_choose_method_takes_first_path_that_endpoint_supports(known: dict[str, object], method: str) -> None:
    assert choose_method(PATHS, parse_capabilities(known)).method == method


def test_choose_method_gives_reason_and_skipped_methods() -> None:
    choice = choose_method(PATHS, Capabilities(tools_field="refused"))

    assert [item.method for item in choice.skipped_methods] == ["native", "template", "constrained"]
    assert choice.skipped_methods[0].reason == "The endpoint refuses requests with tools."
    assert choice.is_deprecated
    assert "deprecated" in choice.reason
    assert choice.to_json()["passed"][0] == {"method": "native", "why": "The endpoint refuses requests with tools."}


def test_choose_method_without_usable_path_suggests_a_solution() -> None:
    choice = choose_method(("native",), Capabilities(supports_tool_use=False))

    assert choice.method == ""
    assert "connect an endpoint" in choice.reason


def test_choose_method_takes_text_json_of_low_stability_last() -> None:
    known = Capabilities(supports_tool_use=False, json_stability="low", constrained=("response_format",))

    assert choose_method(("text_json", "constrained"), known).method == "constrained"
    assert choose_method(("text_json", "constrained"), known).constraint == "response_format"
    assert choose_method(("native", "text_json"), known).method == "text_json"


def test_find_method_obstacle_of_unknown_method_says_so() -> None:
    assert find_method_obstacle("telepathy", Capabilities()) == "There is no method telepathy."


def test_list_tool_problems_names_what_endpoint_would_refuse() -> None:
    strict_capabilities = Capabilities(max_tools=1, name_pattern="^[a-z_]{1,12}$", schema_dialect=("$ref", "type"))
    tools = (
        ToolDefinition("fine", "", {"properties": {"$ref": {"enum": ["a"]}}}),
        ToolDefinition("FarTooLongAName", "", {"properties": {"at": {"$ref": "#/$defs/at"}}}),
    )

    assert list_tool_problems(tools, strict_capabilities) == (
        "There are 2 tools and the endpoint accepts at most 1.",
        "The endpoint accepts only tool names that match ^[a-z_]{1,12}$, unlike FarTooLongAName.",
        "The endpoint refuses schemas with $ref, such as that of FarTooLongAName.",
    )
    assert list_tool_problems(tools, Capabilities()) == ()


def test_list_tool_problems_reads_schema_of_property_named_properties() -> None:
    schema = {"properties": {"properties": {"type": "string", "pattern": "^a$"}}}
    capabilities = Capabilities(schema_dialect=("pattern",))

    assert list_tool_problems((ToolDefinition("save", "", schema),), capabilities) == (
        "The endpoint refuses schemas with pattern, such as that of save.",
    )


@pytest.mark.parametrize("pattern", ["[a", "a{9999999999}"])
def test_list_tool_problems_ignores_pattern_that_is_no_regular_expression(pattern: str) -> None:
    assert list_tool_problems((ToolDefinition("fine"),), Capabilities(name_pattern=pattern)) == ()
