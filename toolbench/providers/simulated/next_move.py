"""Next move of a correct model: the next calls of its script, or a text when no call is left."""

import re
from dataclasses import dataclass

from toolbench.providers.simulated.chat_request import ChatRequest
from toolbench.providers.simulated.knowledge.facts import find_plain_answer
from toolbench.providers.simulated.knowledge.tasks import render_final_reply
from toolbench.providers.simulated.script import Call, CallScript, build_script

OUTPUT_TOO_LARGE_CODE = "TOOL_OUTPUT_TOO_LARGE"
MAX_FAILED_TRIES = 4  # failed attempts at one call before the model gives up


@dataclass(frozen=True, slots=True)
class Move:
    """Calls or a text, and their place in the script.

    Attributes:
        place: first, middle, last (the script's last message), final (a text after calls), control (a text where no
            call was needed) or tight (the same with a limit of at most 64 tokens).
        tried: whether the same message was sent before without success.
        remaining_calls: calls of the script after this move.
    """

    calls: tuple[Call, ...] = ()
    text: str = ""
    place: str = "control"
    tried: bool = False
    remaining_calls: tuple[Call, ...] = ()


def choose_next_move(conversation: ChatRequest) -> Move:
    """Return the move that a correct model makes next."""
    script = build_script(conversation)
    position, failures = _count_progress(script, conversation)
    calls = [(call, number) for number, message in enumerate(script) for call in message]
    if position >= len(calls) or failures >= MAX_FAILED_TRIES:
        return _build_final_move(conversation)
    number = calls[position][1]
    message = tuple(call for call, of in calls[position:] if of == number)
    rest = tuple(call for call, of in calls[position:] if of > number)
    place = "last" if number == len(script) - 1 else "first" if position == 0 else "middle"
    return Move(calls=message, place=place, tried=failures > 0, remaining_calls=rest)


def _count_progress(script: CallScript, conversation: ChatRequest) -> tuple[int, int]:
    """Return how many calls of the script are completed, and how often the next one has failed.

    A call that is followed by another call of the same tool is expected to be refused, so one attempt completes it.
    """
    names = [call.name for message in script for call in message]
    position = failures = 0
    for report in conversation.reports:
        if position >= len(names) or report.name != names[position]:
            continue
        meant_to_fail = report.name in names[position + 1 :]
        if report.ok or meant_to_fail or OUTPUT_TOO_LARGE_CODE in report.codes:
            position, failures = position + 1, 0
        else:
            failures += 1
    return position, failures


def _build_final_move(conversation: ChatRequest) -> Move:
    place = "final" if conversation.turns else "tight" if conversation.is_tight else "control"
    if known := render_final_reply(conversation):
        text = known
    elif re.search(r"\bDone\b", conversation.text):
        text = "Done."
    elif conversation.reports:
        text = f"Finished after calling {conversation.reports[-1].name}."
    else:
        text = find_plain_answer(conversation.question) or "I do not know."
    return Move(text=text, place=place, tried=conversation.is_reprompted)
