"""Test cases built from Python tools, and simulated tools with the results that a test case defines."""

import inspect
from collections.abc import Mapping
from typing import Any

from toolbench.adapters.python_tools import build_python_tool
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.python_functions import PythonTool, PythonTools
from toolbench.engine.types import JsonObject
from toolbench.evals.user_cases.definition import case_to_json
from toolbench.evals.user_cases.parse import parse_case
from toolbench.evals.user_cases.simulated_tools import SimulatedTools, get_data

_FILE_KEYS = ("slug", "title", "set")  # members of an exported line that are not part of the case itself


def build_case(
    tools: PythonTools, messages: Any, expect: Any, *, title: str = "", results: JsonObject | None = None
) -> JsonObject:
    """Return a test case as a JSON object: one line of a file that the page Test cases imports.

    Args:
        tools: the tools; only their definitions are used.
        messages: text of the user's message, or the list of messages before the first answer.
        expect: the expected call, or any other expectation of a case.
        title: title of the case; "" to let the import build one.
        results: results of the simulated tools by name, such as {"get_weather": {"fixed": 4}}.

    Raises:
        InvalidCaseError: the case is not valid; the message says why.
    """
    definitions = [definition.to_openai() for definition in tools.registry.definitions]
    document = {"tools": definitions, "messages": messages, "expect": expect, "results": results or {}}
    return ({"title": title} if title else {}) | case_to_json(parse_case(document))


def build_simulated_tools(document: Mapping[str, Any]) -> PythonTools:
    """Return the simulated tools of a test case.

    The tools return the results that the test case defines, and share one state.

    Args:
        document: the JSON object of a case, as in a line of an exported file.

    Raises:
        InvalidCaseError: the case is not valid; the message says why.
    """
    case = parse_case({key: value for key, value in document.items() if key not in _FILE_KEYS})
    simulation = SimulatedTools(case.results, case.initial, case.workspace or None)
    return PythonTools({definition.name: _build_tool(definition, simulation) for definition in case.definitions})


def _build_tool(definition: ToolDefinition, simulation: SimulatedTools) -> PythonTool:
    async def call(**arguments: Any) -> object:
        answer = simulation.call(definition.name, arguments, "")
        return get_data(await answer if inspect.isawaitable(answer) else answer)

    return build_python_tool(definition, call)
