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
def test_the_first_path_that_the_endpoint_can_take_is_taken(known: dict[str, object], method: str) -> None:
    assert choose_method(PATHS, parse_capabilities(known)).method == method


def test_the_route_says_why_and_what_was_passed_over() -> None:
    chosen = choose_method(PATHS, Capabilities(tools_field="refused"))

    assert [item.method for item in chosen.skipped_methods] == ["native", "template", "constrained"]
    assert chosen.skipped_methods[0].reason == "The endpoint refuses requests with tools."
    assert chosen.is_deprecated
    assert "deprecated" in chosen.reason
    assert chosen.to_json()["passed"][0] == {"method": "native", "why": "The endpoint refuses requests with tools."}


def test_where_no_path_is_left_the_run_is_refused_with_what_would_help() -> None:
    refused = choose_method(("native",), Capabilities(supports_tool_use=False))

    assert refused.method == ""
    assert "connect an endpoint" in refused.reason


def test_text_json_of_low_stability_gives_way_and_is_the_last_resort() -> None:
    known = Capabilities(supports_tool_use=False, json_stability="low", constrained=("response_format",))

    assert choose_method(("text_json", "constrained"), known).method == "constrained"
    assert choose_method(("text_json", "constrained"), known).constraint == "response_format"
    assert choose_method(("native", "text_json"), known).method == "text_json"


def test_an_unknown_method_is_never_taken() -> None:
    assert find_method_obstacle("telepathy", Capabilities()) == "There is no method telepathy."


def test_tools_the_endpoint_would_refuse_are_found_before_they_are_sent() -> None:
    picky = Capabilities(max_tools=1, name_pattern="^[a-z_]{1,12}$", schema_dialect=("$ref", "type"))
    tools = (
        ToolDefinition("fine", "", {"properties": {"$ref": {"enum": ["a"]}}}),
        ToolDefinition("FarTooLongAName", "", {"properties": {"at": {"$ref": "#/$defs/at"}}}),
    )

    assert list_tool_problems(tools, picky) == (
        "There are 2 tools and the endpoint takes 1.",
        "The endpoint does not take the name FarTooLongAName: it wants ^[a-z_]{1,12}$.",
        "The endpoint refuses $ref in a schema, which FarTooLongAName has.",
    )
    assert list_tool_problems(tools, Capabilities()) == ()


def test_list_tool_problems_reads_keywords_below_a_property_named_properties() -> None:
    schema = {"properties": {"properties": {"type": "string", "pattern": "^a$"}}}
    capabilities = Capabilities(schema_dialect=("pattern",))

    assert list_tool_problems((ToolDefinition("save", "", schema),), capabilities) == (
        "The endpoint refuses pattern in a schema, which save has.",
    )
