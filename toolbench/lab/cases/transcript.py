"""Messages of a stored trial of a test case in OpenAI's format, with which a conversation goes on."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise, takewhile

from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.strict_json import get_object
from toolbench.engine.types import JsonObject, Message
from toolbench.evals.user_cases.definition import UserCase
from toolbench.evals.user_cases.options import WORKSPACE_STATE_KEYS
from toolbench.evals.user_cases.simulated_tools import SimulatedTools
from toolbench.lab.models import Trial
from toolbench.lab.traces.reading import StepWithDetails, list_steps

_REASONING_KEYS = ("reasoning_content", "reasoning", "reasoning_details")


@dataclass(frozen=True, slots=True)
class Transcript:
    """Messages and state with which a conversation goes on after a trial.

    Attributes:
        messages: the messages so far, without the system prompt and without the last message of the user if it was not
            answered.
        unanswered: the last message of the user if it was not answered, otherwise "".
        further: the user's further messages that were not sent.
        state: the simulated state after the trial's calls; {} without one.
    """

    messages: tuple[Message, ...] = ()
    unanswered: str = ""
    further: tuple[str, ...] = ()
    state: JsonObject = field(default_factory=dict)


def build_transcript(trial: Trial, case: UserCase) -> Transcript:
    """Return the transcript of a trial.

    Args:
        trial: trial whose steps and their bodies are prefetched.
        case: the case in the version of the trial.
    """
    messages = list(case.messages)
    if len(messages) > 1 and messages[0].get("role") == "system" and isinstance(messages[0].get("content"), str):
        del messages[0]
    steps, case_message_count = list_steps(trial), len(messages)
    user_messages = tuple(_iter_user_messages(steps))
    for user_text, message_steps in user_messages:
        messages += [{"role": "user", "content": user_text}] if user_text else []
        messages += _iter_answers(message_steps)
    has_answer = any(message["role"] != "user" for message in messages[case_message_count:])
    unanswered = str(messages.pop()["content"]) if messages[-1]["role"] == "user" else ""
    state = _compute_state(case, steps) if has_answer else case.initial
    return Transcript(tuple(messages), unanswered, case.further[len(user_messages) - 1 :], state)


def _iter_user_messages(steps: Sequence[StepWithDetails]) -> Iterator[tuple[str, Sequence[StepWithDetails]]]:
    """Yield each message of the user, "" for the last message of the case, with the steps up to the next one."""
    starts = [0, *(index for index, step in enumerate(steps) if index and step.facts.get("said"))]
    for start, end in pairwise([*starts, len(steps)]):
        yield str(steps[start].facts["said"]) if start else "", steps[start:end]


def _iter_answers(steps: Sequence[StepWithDetails]) -> Iterator[Message]:
    """Yield the model's answers to one message of the user, and the results of its calls.

    An answer without executed calls is left out if it is blank, or if the loop re-prompted after it.
    """
    answer_indexes = [index for index, step in enumerate(steps) if not step.is_tool and step.step.ok]
    for index in answer_indexes:
        executed = tuple(takewhile(lambda step: step.is_tool, steps[index + 1 :]))
        message = _build_answer(steps[index], executed)
        if executed or (index == answer_indexes[-1] and message["content"]):
            yield message
            yield from (_build_result(step) for step in executed)


def _build_answer(step: StepWithDetails, executed: Sequence[StepWithDetails]) -> Message:
    received = get_object(step.facts.get("message"))
    reasoning = {key: received[key] for key in _REASONING_KEYS if received.get(key)}
    calls = [_build_call(tool_step) for tool_step in executed]
    message: Message = {"role": "assistant", "content": str(step.facts.get("text") or "") or None, **reasoning}
    return {**message, "tool_calls": calls} if calls else message


def _build_call(step: StepWithDetails) -> JsonObject:
    call, arguments = get_object(step.facts.get("call")), step.facts.get("arguments")
    raw_arguments = call.get("arguments")
    raw_text = raw_arguments if isinstance(raw_arguments, str) else "{}"
    text = json.dumps(arguments) if isinstance(arguments, dict) else raw_text
    function = {"name": str(call.get("name") or ""), "arguments": text}
    return {"id": _get_call_id(step), "type": "function", "function": function}


def _build_result(step: StepWithDetails) -> Message:
    content = bytes(step.step.body.response).decode("utf-8", "replace")
    return {"role": "tool", "tool_call_id": _get_call_id(step), "content": content}


def _get_call_id(step: StepWithDetails) -> str:
    return str(get_object(step.facts.get("call")).get("id") or f"call_{step.step.ordinal}")


def _compute_state(case: UserCase, steps: Sequence[StepWithDetails]) -> JsonObject:
    """Return the simulated state after the executed calls, which are repeated on fresh simulated tools."""
    if not (case.initial or case.workspace or any("set" in entry for entry in case.results.values())):
        return {}
    tools = SimulatedTools(case.results, case.initial, case.workspace)
    for step in steps:
        arguments = step.facts.get("arguments")
        if step.is_tool and step.facts.get("executed") and isinstance(arguments, dict):
            with suppress(ToolArgumentError, RuntimeError):  # a refusal or a fault, as in the trial
                tools.call(step.step.tool_name, arguments, _get_call_id(step))
    hidden_names = WORKSPACE_STATE_KEYS if case.workspace else set()  # the workspace sets these itself
    return {name: value for name, value in tools.snapshot().items() if name not in hidden_names}
