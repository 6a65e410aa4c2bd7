"""Drifts of judgement: the answer is well formed, and the player does the wrong thing. Each takes a competent move
and returns what is played instead."""

import random
from collections.abc import Callable
from dataclasses import replace

from toolbench.providers.simulated.chat_request import ChatRequest
from toolbench.providers.simulated.known_values import REASON_KEYS
from toolbench.providers.simulated.next_move import Move
from toolbench.providers.simulated.script import Call

MoveFault = Callable[[Move, ChatRequest, random.Random], Move]
PROSE_TEXT = "I would look that up with a tool and then tell you what I found."


def only_prose(move: Move, conversation: ChatRequest, draw: random.Random) -> Move:
    return replace(move, calls=(), text=PROSE_TEXT)


def says_done_too_early(move: Move, conversation: ChatRequest, draw: random.Random) -> Move:
    return replace(move, calls=(), text="Done.")


def several_calls(move: Move, conversation: ChatRequest, draw: random.Random) -> Move:
    return replace(move, calls=move.calls + move.remaining_calls)


def unknown_tool(move: Move, conversation: ChatRequest, draw: random.Random) -> Move:
    return replace(move, calls=tuple(Call(f"{call.name}_now", call.arguments) for call in move.calls))


def hidden_tool(move: Move, conversation: ChatRequest, draw: random.Random) -> Move:
    arguments = {"request_id": "r1", "proposal_id": "p1", "user_confirmed": True}
    return replace(move, calls=(Call("facts_commit", arguments),))


def wrong_types(move: Move, conversation: ChatRequest, draw: random.Random) -> Move:
    """Arrays become their first item, texts become numbers in a tool without arrays."""
    return replace(move, calls=tuple(Call(call.name, _change_types(call.arguments)) for call in move.calls))


def wrong_value(move: Move, conversation: ChatRequest, draw: random.Random) -> Move:
    return replace(move, calls=tuple(Call(call.name, _change_last_value(call.arguments)) for call in move.calls))


def never_shortens(move: Move, conversation: ChatRequest, draw: random.Random) -> Move:
    """Where too long an argument was refused, the same length is sent again."""
    if "ARGUMENTS_TOO_LARGE" not in conversation.text:
        return move
    return replace(move, calls=tuple(Call(call.name, _lengthen_value(call.arguments)) for call in move.calls))


def repeats_first_call(move: Move, conversation: ChatRequest, draw: random.Random) -> Move:
    """Reads again and again, and never comes to the change."""
    if not conversation.reports or not move.calls:
        return move
    return replace(move, calls=(Call(conversation.reports[0].name, {}),))


def chats_around(move: Move, conversation: ChatRequest, draw: random.Random) -> Move:
    return replace(move, text=f"Sure! Here you go: {move.text} Is there anything else I can do for you?")


def unreliable(move: Move, conversation: ChatRequest, draw: random.Random) -> Move:
    """One of three ways to miss the task; any of them fails the trial."""
    return draw.choice((only_prose, says_done_too_early, wrong_value))(move, conversation, draw)


def _change_types(arguments: dict[str, object]) -> dict[str, object]:
    if any(isinstance(value, list) and value for value in arguments.values()):
        return {key: value[0] if isinstance(value, list) and value else value for key, value in arguments.items()}
    return dict.fromkeys(arguments, 7)


def _change_last_value(arguments: dict[str, object]) -> dict[str, object]:
    """The last value inside that is no mere reason is replaced: the value written, the city asked for."""
    told = [key for key in arguments if key not in REASON_KEYS]
    key = told[-1] if told else ""
    value = arguments.get(key)
    if isinstance(value, list) and value and isinstance(value[-1], dict):
        return arguments | {key: [*value[:-1], _change_last_value(value[-1])]}
    return arguments | {key: "something else"} if key else arguments


def _lengthen_value(arguments: dict[str, object]) -> dict[str, object]:
    key = list(arguments)[-1] if arguments else ""
    value = arguments.get(key)
    if isinstance(value, list) and value and isinstance(value[-1], dict):
        return arguments | {key: [*value[:-1], value[-1] | {"value": "x" * 400}]}
    return arguments


MOVE_FAULTS: dict[str, MoveFault] = {
    "only_prose": only_prose,
    "says_done_too_early": says_done_too_early,
    "several_calls": several_calls,
    "unknown_tool": unknown_tool,
    "hidden_tool": hidden_tool,
    "wrong_types": wrong_types,
    "wrong_value": wrong_value,
    "never_shortens": never_shortens,
    "repeats_first_call": repeats_first_call,
    "chats_around": chats_around,
    "unreliable": unreliable,
}
