"""One move of a competent player: the next calls of its script, or a text when there is nothing left to call."""

import re
from dataclasses import dataclass

from toolbench.providers.simulated.chat_request import ChatRequest
from toolbench.providers.simulated.general_knowledge import find_plain_answer
from toolbench.providers.simulated.known_tasks import render_final_reply
from toolbench.providers.simulated.script import Call, CallScript, build_script

OUTPUT_TOO_LARGE_CODE = "TOOL_OUTPUT_TOO_LARGE"
MAX_FAILED_TRIES = 4  # failed tries of one call before the player gives up


@dataclass(frozen=True, slots=True)
class Move:
    """Calls, or text, and where in the script it stands. `place` is first, middle, last (the script's last message),
    final (a text after work), control (a text where nothing had to be called) or tight (the same in at most 64
    tokens)."""

    calls: tuple[Call, ...] = ()
    text: str = ""
    place: str = "control"
    tried: bool = False  # this very message was sent before and did not do
    remaining_calls: tuple[Call, ...] = ()  # what the script still holds after this move


def choose_next_move(conversation: ChatRequest) -> Move:
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
    """How many calls of the script are behind us, and how often the next one has failed. A call that is followed by
    another of the same tool is meant to be refused: one try settles it."""
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
