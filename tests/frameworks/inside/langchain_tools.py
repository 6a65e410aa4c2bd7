"""Tools of LangChain read and built by the adapter. These tests run in LangChain's environment."""

import asyncio
from typing import Any

import pytest
from langchain_core.tools import BaseTool, Tool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from tests.frameworks.inside.sample_tools import SearchArguments, double, echo, wait
from toolbench.adapters.langchain import build_tool, build_tools, read_tool, read_tools
from toolbench.adapters.python_tools import build_python_tool
from toolbench.engine.errors import PlanError
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.python_functions import PythonTools, python_tool


class Search(BaseTool):
    """Tool that is a class."""

    name: str = "search"
    description: str = "Look something up."
    args_schema: Any = SearchArguments

    def _run(self, query: str, limit: int = 10) -> list[str]:
        return [query] * limit


@tool
def fail(reason: str) -> str:
    """Fail."""
    raise RuntimeError(reason)


def test_read_tool_of_a_class_has_definition_and_runs() -> None:
    read = read_tool(Search())
    assert read.definition.description == "Look something up."
    assert read.definition.parameters["required"] == ["query"]
    assert read.definition.parameters["properties"]["query"]["description"] == "What to look for"
    assert read.call({"query": "tea", "limit": 2}) == ["tea", "tea"]
    assert not read.is_async


@pytest.mark.parametrize("single_input", [False, True])
def test_read_tool_of_async_function_is_async(single_input: bool) -> None:
    read = read_tool(Tool("wait", None, "Wait.", coroutine=wait) if single_input else tool(wait))
    assert read.is_async
    (name,) = read.definition.parameters["properties"]

    async def run() -> Any:
        value: Any = read.call({name: 3})
        return await value

    assert asyncio.run(run()) == "waited 3"


def test_read_tool_raises_the_error_of_a_tool() -> None:
    with pytest.raises(RuntimeError, match="no time"):
        read_tool(fail).call({"reason": "no time"})


def test_read_tools_refuses_blanks_in_names_and_repeated_names() -> None:
    with pytest.raises(PlanError, match="cannot name a tool"):
        read_tool(tool("look up")(double))
    with pytest.raises(PlanError, match="used more than once"):
        read_tools([tool(wait), tool(wait)])


def test_build_tools_keeps_the_schema_of_the_definition() -> None:
    definition = ToolDefinition("search", "Search.").with_parameter("query", str, minLength=2)
    (built,) = build_tools(PythonTools({"search": build_python_tool(definition, echo)}))
    assert convert_to_openai_tool(built)["function"]["parameters"] == definition.parameters
    assert built.invoke({"query": "tea"}) == {"query": "tea"}


def test_build_tool_runs_sync_and_async() -> None:
    built = build_tool(python_tool(double))
    assert built.invoke({"number": 2}) == {"number": 4}
    assert asyncio.run(built.ainvoke({"number": 2})) == {"number": 4}


def test_build_tool_error_names_the_wrong_argument() -> None:
    call = {"type": "tool_call", "id": "a", "name": "double", "args": {"number": "two"}}
    message = build_tool(python_tool(double)).invoke(call)
    assert (message.status, "$.number" in message.content) == ("error", True)


def test_read_tool_of_a_built_tool_equals_the_original() -> None:
    original = python_tool(double)
    read_again = read_tool(build_tool(original))
    assert read_again.definition.to_openai() == original.definition.to_openai()
    assert read_again.call({"number": 2}) == {"number": 4}
