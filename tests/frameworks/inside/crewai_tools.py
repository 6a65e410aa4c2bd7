"""Tools of CrewAI read and built by the adapter. These tests run in CrewAI's environment."""

from typing import Any

import pytest
from crewai.tools import BaseTool, ToolFailure, tool
from crewai.utilities.agent_utils import convert_tools_to_openai_schema

from tests.frameworks.inside.sample_tools import SearchArguments, double, wait
from toolbench.adapters.crewai import build_tool, build_tools, read_tool, read_tools
from toolbench.engine.errors import PlanError
from toolbench.engine.tools.python_functions import PythonTools, python_tool


class Search(BaseTool):
    """Tool that is a class."""

    name: str = "Search the web"
    description: str = "Look something up."
    args_schema: Any = SearchArguments

    def _run(self, query: str, limit: int = 10) -> list[str]:
        return [query] * limit


@tool
def report(reason: str) -> ToolFailure:
    """Report a failure."""
    return ToolFailure(message=reason)


def test_read_tool_of_a_class_has_definition_and_runs() -> None:
    read = read_tool(Search())
    assert (read.definition.name, read.definition.description) == ("search_the_web", "Look something up.")
    assert read.definition.parameters["required"] == ["query", "limit"]
    assert read.call({"query": "tea", "limit": 2}) == ["tea", "tea"]


def test_read_tool_of_async_function_runs() -> None:
    assert read_tool(tool(wait)).call({"seconds": 3}) == "waited 3"


def test_read_tool_raises_the_failure_that_a_tool_reports() -> None:
    with pytest.raises(RuntimeError, match="no time"):
        read_tool(report).call({"reason": "no time"})


def test_read_tools_refuses_repeated_names() -> None:
    with pytest.raises(PlanError, match="used more than once"):
        read_tools([Search(), Search()])


def test_build_tools_run_and_answer_in_json() -> None:
    (built,) = build_tools(PythonTools.from_functions(double))
    assert built.run(number=2) == {"number": 4}
    assert built.format_output_for_agent(built.run(number=2)) == '{"number": 4}'


def test_build_tool_refuses_arguments_that_break_the_schema() -> None:
    with pytest.raises(Exception, match=r"\$\.number"):
        build_tool(python_tool(double)).run(number="two")


def test_read_tool_of_a_built_tool_equals_the_original() -> None:
    original = python_tool(double)
    (sent,), *_ = convert_tools_to_openai_schema([build_tool(original)])
    read_again = read_tool(build_tool(original))
    assert sent["function"]["parameters"] == {**original.definition.parameters, "additionalProperties": False}
    assert read_again.definition.description == original.definition.description
    assert read_again.call({"number": 2}) == {"number": 4}
