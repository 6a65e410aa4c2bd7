"""Script of the calls that a correct model makes for the current task.

A known task in the question determines the script, even if it needs no call. Otherwise, the script comes from the first
of these that gives calls: known sentences in the instructions, calls that are written in the instructions, an offered
tool with values from the question, and a tool of which tool_choice requires a call.
"""

import re
from dataclasses import dataclass

from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.chat_request import ChatRequest, find_json_objects
from toolbench.providers.simulated.knowledge.argument_guess import guess_arguments, list_best_tools
from toolbench.providers.simulated.knowledge.instruction_tasks import find_known_messages
from toolbench.providers.simulated.knowledge.plain_answers import find_answer_without_tools
from toolbench.providers.simulated.knowledge.tasks import KnownTask, find_known_task
from toolbench.providers.simulated.knowledge.values import fill_arguments

WORKSPACE_ID_PATTERN = re.compile(r"workspace_id=([\w-]+)")


@dataclass(frozen=True, slots=True)
class Call:
    """Tool call with the tool's name and its arguments."""

    name: str
    arguments: JsonObject


CallMessage = tuple[Call, ...]
CallScript = tuple[CallMessage, ...]


def build_script(request: ChatRequest) -> CallScript:
    """Return the messages that a correct model sends, each a tuple of calls; () if the task needs no call."""
    if known_task := find_known_task(request):
        return _build_known_task_script(known_task, request)
    if instruction_script := _build_instruction_script(request):
        return instruction_script
    if written_calls := _find_written_calls(request):
        return _group_into_messages(written_calls, request)
    guessed_call = _guess_call(request) or _build_required_call(request)
    return ((guessed_call,),) if guessed_call else ()


def _build_known_task_script(known_task: KnownTask, request: ChatRequest) -> CallScript:
    """Return the messages of a known task, without calls of tools that are not offered."""
    offered_names = {tool["name"] for tool in list_offered_tools(request)}
    calls = tuple(Call(name, arguments) for name, arguments in known_task.calls if name in offered_names)
    if calls and known_task.in_one_message and request.allows_parallel_calls:
        return (calls,)
    return tuple((call,) for call in calls)


def _build_instruction_script(request: ChatRequest) -> CallScript:
    """Return the messages of a known task in the instructions.

    Returns:
        () if there is no known task or one of its tools is not offered.
    """
    workspace_id = WORKSPACE_ID_PATTERN.search(request.question)
    messages = find_known_messages(request.instructions, workspace_id.group(1) if workspace_id else "")
    offered_names = {tool["name"] for tool in list_offered_tools(request)} if messages else set()
    if not all(name in offered_names for message in messages for name, _ in message):
        return ()
    script = tuple(tuple(Call(name, arguments) for name, arguments in message) for message in messages)
    return script if request.allows_parallel_calls else tuple((call,) for message in script for call in message)


def list_offered_tools(request: ChatRequest) -> tuple[JsonObject, ...]:
    """Return the functions of the request's tools; without tools, those defined in the instructions."""
    if request.functions:
        return request.functions
    candidates = (found.get("function", found) for _, _, found in find_json_objects(request.instructions))
    return tuple(tool for tool in candidates if isinstance(tool, dict) and {"name", "parameters"} <= tool.keys())


def _find_written_calls(request: ChatRequest) -> list[Call]:
    """Return the calls that the instructions contain as a tool's name followed by its arguments as JSON."""
    names = [str(tool["name"]) for tool in list_offered_tools(request)]
    if not names:
        return []
    text = request.instructions
    mentions = [(match.start(), match.group()) for match in re.finditer("|".join(map(re.escape, names)), text)]
    calls = []
    for start, _, arguments in find_json_objects(text):
        call = _parse_call(arguments, [name for position, name in mentions if position < start])
        if call is not None:
            calls.append(_fill_workspace_id(call, request))
    return calls


def _parse_call(arguments: JsonObject, preceding_names: list[str]) -> Call | None:
    """Return a call of the last tool that is named before a JSON object, with the object as its arguments.

    Returns:
        None if no tool is named before the object, or if the object defines a tool or shows how to write a call.
    """
    if {"parameters", "arguments", "function", "final"} & arguments.keys() or not preceding_names:
        return None
    return Call(preceding_names[-1], arguments)


def _fill_workspace_id(call: Call, request: ChatRequest) -> Call:
    workspace_id = WORKSPACE_ID_PATTERN.search(request.question)
    if workspace_id and "workspace_id" in call.arguments:
        return Call(call.name, call.arguments | {"workspace_id": workspace_id.group(1)})
    return call


def _group_into_messages(calls: list[Call], request: ChatRequest) -> CallScript:
    """Return one message per call.

    The first two calls share a message if the instructions contain "FIRST message" and parallel calls are allowed.
    """
    is_first_pair = "FIRST message" in request.instructions and request.allows_parallel_calls and len(calls) > 1
    first_messages: CallScript = ((calls[0], calls[1]),) if is_first_pair else ()
    return first_messages + tuple((call,) for call in calls[2 if is_first_pair else 0 :])


def _guess_call(request: ChatRequest) -> Call | None:
    """Return a call of the tool that fits the question best, or None if no call is needed or no tool fits.

    Among tools that fit equally well, one whose required arguments are all known is preferred. If no tool shares a word
    with the question, only tools with such arguments fit.
    """
    question, tools = request.question, list_offered_tools(request)
    if find_answer_without_tools(question):
        return None
    best_tools = list_best_tools(tools, question)
    candidates = (tool for tool in best_tools or tools if fill_arguments(tool, question) is not None)
    tool = next(candidates, best_tools[0] if best_tools else None)
    return Call(str(tool["name"]), guess_arguments(tool, question)) if tool else None


def _build_required_call(request: ChatRequest) -> Call | None:
    """Return a call of the first tool of which tool_choice requires a call, or None if it requires none."""
    tools = (tool for tool in request.functions if tool["name"] in request.required_tools)
    return next((Call(str(tool["name"]), guess_arguments(tool, request.question)) for tool in tools), None)
