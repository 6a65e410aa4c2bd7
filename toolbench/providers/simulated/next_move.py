"""Next move of a correct model: the next calls of its script, or the text that ends the task."""

import re
from dataclasses import dataclass

from toolbench.providers.simulated.chat_request import ChatRequest
from toolbench.providers.simulated.knowledge.plain_answers import find_answer_without_tools
from toolbench.providers.simulated.knowledge.tasks import render_final_reply
from toolbench.providers.simulated.script import Call, CallScript, build_script

OUTPUT_TOO_LARGE_CODE = "TOOL_OUTPUT_TOO_LARGE"
MAX_FAILED_TRIES = 4  # failed attempts at one call before the model gives up


@dataclass(frozen=True, slots=True)
class Move:
    """Calls or a text, and their place in the script.

    Attributes:
        calls: the calls; empty for a text.
        text: the text; "" with calls.
        place: of calls: last (the script's last message, even if it is also the first), first (no call is completed
            before) or middle; of a text: final (after an earlier answer), tight (the first answer, if the token limit
            is at most `MAX_TIGHT_TOKENS`) or control (any other first answer).
        has_failed_before: whether the same calls were sent before without success; for a text, whether the client
            asks again after a blank answer.
        remaining_calls: calls of the script after this move.
    """

    calls: tuple[Call, ...] = ()
    text: str = ""
    place: str = "control"
    has_failed_before: bool = False
    remaining_calls: tuple[Call, ...] = ()


def choose_next_move(request: ChatRequest) -> Move:
    """Return the move that a correct model makes next."""
    script = build_script(request)
    position, failures = _count_progress(script, request)
    calls = [(call, message_number) for message_number, message in enumerate(script) for call in message]
    if position >= len(calls) or failures >= MAX_FAILED_TRIES:
        return _build_final_move(request)
    next_number = calls[position][1]
    message = tuple(call for call, message_number in calls[position:] if message_number == next_number)
    remaining_calls = tuple(call for call, message_number in calls[position:] if message_number > next_number)
    place = "last" if next_number == len(script) - 1 else "first" if position == 0 else "middle"
    return Move(calls=message, place=place, has_failed_before=failures > 0, remaining_calls=remaining_calls)


def _count_progress(script: CallScript, request: ChatRequest) -> tuple[int, int]:
    """Return how many calls of the script are completed, and how often the next one has failed.

    A failed call counts as completed if its result was too large, or if a later call of the script is to the same tool:
    the task then expects the failure. Results of other tools than the next one are ignored.
    """
    names = [call.name for message in script for call in message]
    position = failures = 0
    for report in request.reports:
        if position >= len(names) or report.name != names[position]:
            continue
        may_fail = report.name in names[position + 1 :]
        if report.ok or may_fail or OUTPUT_TOO_LARGE_CODE in report.codes:
            position, failures = position + 1, 0
        else:
            failures += 1
    return position, failures


def _build_final_move(request: ChatRequest) -> Move:
    place = "final" if request.turns else "tight" if request.is_tight else "control"
    if known_reply := render_final_reply(request):
        text = known_reply
    elif re.search(r"\bDone\b", request.text):  # many tasks ask for this final reply
        text = "Done."
    elif request.reports:
        text = f"Finished after calling {request.reports[-1].name}."
    else:
        text = find_answer_without_tools(request.question) or "I do not know."
    return Move(text=text, place=place, has_failed_before=request.is_reprompted)
