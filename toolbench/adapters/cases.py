"""Test cases made of tools, and the tools of test cases with the answers that the case gives them."""

import inspect
from collections.abc import Mapping
from typing import Any

from toolbench.adapters.python_tools import build_python_tool
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.python_functions import PythonTool, PythonTools
from toolbench.engine.types import JsonObject
from toolbench.evals.user_cases.definition import case_to_json
from toolbench.evals.user_cases.parse import parse_case
from toolbench.evals.user_cases.simulated_tools import SimulatedTools

_FILE_KEYS = ("slug", "title", "set")


def build_case(
    tools: PythonTools, messages: Any, expect: Any, *, title: str = "", results: JsonObject | None = None
) -> JsonObject:
    """Return a test case as a line of a file that the page of cases imports.

    Args:
        tools: the tools, of which only the definitions are used.
        messages: what the user says, or the messages before the first answer.
        expect: the expected call, or any other expectation of a case.
        title: title of the case; "" for one that the import builds.
        results: answers of the simulated tools by name, such as {"get_weather": {"fixed": 4}}.

    Raises:
        InvalidCaseError: the case is not valid; the message says why.
    """
    definitions = [definition.to_openai() for definition in tools.registry.definitions]
    document = {"tools": definitions, "messages": messages, "expect": expect, "results": results or {}}
    return ({"title": title} if title else {}) | case_to_json(parse_case(document))


def build_simulated_tools(document: Mapping[str, Any]) -> PythonTools:
    """Return the tools of a test case, which answer as the case says and share its state.

    Args:
        document: a case, as a line of an exported file.

    Raises:
        InvalidCaseError: the case is not valid; the message says why.
    """
    case = parse_case({key: value for key, value in document.items() if key not in _FILE_KEYS})
    simulated = SimulatedTools(case.results, case.initial, case.workspace or None)
    return PythonTools({definition.name: _simulate_tool(definition, simulated) for definition in case.definitions})


def _simulate_tool(definition: ToolDefinition, simulated: SimulatedTools) -> PythonTool:
    async def call(**arguments: Any) -> object:
        value = simulated.call(definition.name, arguments, "")
        return await value if inspect.isawaitable(value) else value

    return build_python_tool(definition, call)
