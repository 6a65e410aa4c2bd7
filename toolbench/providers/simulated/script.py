"""Script of calls that a correct model makes for the current task.

The first source that gives calls is used: a known task in the question, known sentences in the instructions, examples
written in the instructions in their order, or an offered tool with values from the question.
"""

import re
from dataclasses import dataclass

from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.chat_request import ChatRequest, find_json_objects
from toolbench.providers.simulated.knowledge.argument_guess import guess_arguments, rank_tools
from toolbench.providers.simulated.knowledge.facts import find_plain_answer
from toolbench.providers.simulated.knowledge.instruction_tasks import find_known_messages
from toolbench.providers.simulated.knowledge.tasks import KnownTask, find_known_task
from toolbench.providers.simulated.knowledge.values import fill_arguments

WORKSPACE_ID_PATTERN = re.compile(r"workspace_id=([\w-]+)")


@dataclass(frozen=True, slots=True)
class Call:
    """Call of a tool."""

    name: str
    arguments: JsonObject


CallMessage = tuple[Call, ...]
CallScript = tuple[CallMessage, ...]


def build_script(conversation: ChatRequest) -> CallScript:
    """Return the messages that a correct model sends, each a tuple of calls; () when no call is needed."""
    if errand := find_known_task(conversation):
        return _build_known_task_script(errand, conversation)
    if known := _build_instruction_script(conversation):
        return known
    if written := _find_written_calls(conversation):
        return _group_into_messages(written, conversation)
    filled = _guess_call(conversation)
    return ((filled,),) if filled else ()


def _build_known_task_script(errand: KnownTask, conversation: ChatRequest) -> CallScript:
    """Return the messages of a known task, without calls of tools that are not offered."""
    offered = {tool["name"] for tool in list_offered_tools(conversation)}
    calls = tuple(Call(name, arguments) for name, arguments in errand.calls if name in offered)
    return (calls,) if errand.in_one_message and conversation.parallel and calls else tuple((call,) for call in calls)


def _build_instruction_script(conversation: ChatRequest) -> CallScript:
    """Return the messages of a task in the instructions; () when one of its tools is not offered."""
    given = WORKSPACE_ID_PATTERN.search(conversation.question)
    messages = find_known_messages(conversation.instructions, given.group(1) if given else "")
    offered = {tool["name"] for tool in list_offered_tools(conversation)} if messages else set()
    if not all(name in offered for message in messages for name, _ in message):
        return ()
    script = tuple(tuple(Call(name, arguments) for name, arguments in message) for message in messages)
    return script if conversation.parallel else tuple((call,) for message in script for call in message)


def list_offered_tools(conversation: ChatRequest) -> tuple[JsonObject, ...]:
    """Return the tools of the request; without any, those whose definitions are in the instructions."""
    if conversation.functions:
        return conversation.functions
    found = (item.get("function", item) for _, _, item in find_json_objects(conversation.instructions))
    return tuple(item for item in found if isinstance(item, dict) and {"name", "parameters"} <= item.keys())


def _find_written_calls(conversation: ChatRequest) -> list[Call]:
    """Return the calls that the instructions contain as a tool's name followed by its arguments as JSON."""
    names = [str(tool["name"]) for tool in list_offered_tools(conversation)]
    if not names:
        return []
    text = conversation.instructions
    mentions = [(m.start(), m.group()) for m in re.finditer("|".join(map(re.escape, names)), text)]
    calls = []
    for start, _, found in find_json_objects(text):
        call = _parse_call(found, [name for position, name in mentions if position < start])
        if call is not None:
            calls.append(_fill_workspace_id(call, conversation))
    return calls


def _parse_call(found: JsonObject, named_before: list[str]) -> Call | None:
    """Return the call, or None for the definition of a tool or an example of how to write a call."""
    if {"parameters", "arguments", "function", "final"} & found.keys() or not named_before:
        return None
    return Call(named_before[-1], found)


def _fill_workspace_id(call: Call, conversation: ChatRequest) -> Call:
    given = WORKSPACE_ID_PATTERN.search(conversation.question)
    if given and "workspace_id" in call.arguments:
        return Call(call.name, call.arguments | {"workspace_id": given.group(1)})
    return call


def _group_into_messages(calls: list[Call], conversation: ChatRequest) -> CallScript:
    together = "FIRST message" in conversation.instructions and conversation.parallel and len(calls) > 1
    head: CallScript = ((calls[0], calls[1]),) if together else ()
    return head + tuple((call,) for call in calls[2 if together else 0 :])


def _guess_call(conversation: ChatRequest) -> Call | None:
    """Return a call of the tool that fits the question best; None when no call is needed or no tool fits.

    A tool whose arguments are all known is preferred to one whose arguments are guessed.
    """
    question, tools = conversation.question, list_offered_tools(conversation)
    if find_plain_answer(question):
        return None
    likely = rank_tools(tools, question)
    known = next((tool for tool in likely or tools if fill_arguments(tool, question) is not None), None)
    chosen = known or (likely[0] if likely else None)
    return Call(str(chosen["name"]), guess_arguments(chosen, question)) if chosen else None
