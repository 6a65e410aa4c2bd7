"""One move of a competent player: the next calls of its script, or a text when there is nothing left to call."""

import re
from dataclasses import dataclass

from toolbench.providers.simulated.chat_request import Conversation
from toolbench.providers.simulated.general_knowledge import answer_plainly
from toolbench.providers.simulated.known_tasks import reply_of
from toolbench.providers.simulated.script import Call, Script, write_script

NOT_REPEATED = "TOOL_OUTPUT_TOO_LARGE"
PATIENCE = 4  # failed tries of one call before the player gives up


@dataclass(frozen=True, slots=True)
class Move:
    """Calls, or text, and where in the script it stands. `place` is first, middle, last (the script's last message),
    final (a text after work), control (a text where nothing had to be called) or tight (the same in at most 64
    tokens)."""

    calls: tuple[Call, ...] = ()
    text: str = ""
    place: str = "control"
    tried: bool = False  # this very message was sent before and did not do
    rest: tuple[Call, ...] = ()  # what the script still holds after this move


def next_move(conversation: Conversation) -> Move:
    script = write_script(conversation)
    position, failures = _progress(script, conversation)
    calls = [(call, number) for number, message in enumerate(script) for call in message]
    if position >= len(calls) or failures >= PATIENCE:
        return _last_words(conversation)
    number = calls[position][1]
    message = tuple(call for call, of in calls[position:] if of == number)
    rest = tuple(call for call, of in calls[position:] if of > number)
    place = "last" if number == len(script) - 1 else "first" if position == 0 else "middle"
    return Move(calls=message, place=place, tried=failures > 0, rest=rest)


def _progress(script: Script, conversation: Conversation) -> tuple[int, int]:
    """How many calls of the script are behind us, and how often the next one has failed. A call that is followed by
    another of the same tool is meant to be refused: one try settles it."""
    names = [call.name for message in script for call in message]
    position = failures = 0
    for report in conversation.reports:
        if position >= len(names) or report.name != names[position]:
            continue
        meant_to_fail = report.name in names[position + 1 :]
        if report.ok or meant_to_fail or NOT_REPEATED in report.codes:
            position, failures = position + 1, 0
        else:
            failures += 1
    return position, failures


def _last_words(conversation: Conversation) -> Move:
    place = "final" if conversation.turns else "tight" if conversation.tight else "control"
    if known := reply_of(conversation):
        text = known
    elif re.search(r"\bDone\b", conversation.text):
        text = "Done."
    elif conversation.reports:
        text = f"Finished after calling {conversation.reports[-1].name}."
    else:
        text = answer_plainly(conversation.question) or "I do not know."
    return Move(text=text, place=place, tried=conversation.pleaded)
