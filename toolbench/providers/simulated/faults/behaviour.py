"""Faults of behaviour: the simulated model gives a well-formed answer with the wrong content.

A public function has the name of its fault in data/personas.json. It takes the correct move and returns the move that
the model makes instead.
"""

import random
from collections.abc import Callable
from dataclasses import replace

from toolbench.providers.simulated.chat_request import ChatRequest
from toolbench.providers.simulated.knowledge.values import REASON_KEYS
from toolbench.providers.simulated.next_move import Move
from toolbench.providers.simulated.script import Call

MoveFault = Callable[[Move, ChatRequest, random.Random], Move]
PROSE_TEXT = "I would look that up with a tool and then tell you what I found."


def only_prose(move: Move, request: ChatRequest, generator: random.Random) -> Move:
    """Announce the call in a text instead of making it."""
    return replace(move, calls=(), text=PROSE_TEXT)


def says_done_too_early(move: Move, request: ChatRequest, generator: random.Random) -> Move:
    """Answer "Done." instead of making the call."""
    return replace(move, calls=(), text="Done.")


def several_calls(move: Move, request: ChatRequest, generator: random.Random) -> Move:
    """Make all remaining calls of the script in one message."""
    return replace(move, calls=move.calls + move.remaining_calls)


def unknown_tool(move: Move, request: ChatRequest, generator: random.Random) -> Move:
    """Call tools that do not exist: each name gets the suffix `_now`."""
    return replace(move, calls=tuple(Call(f"{call.name}_now", call.arguments) for call in move.calls))


def hidden_tool(move: Move, request: ChatRequest, generator: random.Random) -> Move:
    """Call only `facts_commit`, a tool that is not offered to the model."""
    arguments = {"request_id": "r1", "proposal_id": "p1", "user_confirmed": True}
    return replace(move, calls=(Call("facts_commit", arguments),))


def wrong_types(move: Move, request: ChatRequest, generator: random.Random) -> Move:
    """Replace each argument that is a non-empty array by its first item; without one, each argument by 7."""
    return replace(move, calls=tuple(Call(call.name, _change_types(call.arguments)) for call in move.calls))


def wrong_value(move: Move, request: ChatRequest, generator: random.Random) -> Move:
    """Replace in each call the last argument other than a reason, or a value in it, by "something else"."""
    return replace(move, calls=tuple(Call(call.name, _change_last_value(call.arguments)) for call in move.calls))


def never_shortens(move: Move, request: ChatRequest, generator: random.Random) -> Move:
    """Send a value of 400 characters in a task about arguments that are too large."""
    if "ARGUMENTS_TOO_LARGE" not in request.text:
        return move
    return replace(move, calls=tuple(Call(call.name, _lengthen_value(call.arguments)) for call in move.calls))


def repeats_first_call(move: Move, request: ChatRequest, generator: random.Random) -> Move:
    """Repeat the first call, without arguments, instead of continuing with the script."""
    if not request.reports or not move.calls:
        return move
    return replace(move, calls=(Call(request.reports[0].name, {}),))


def chats_around(move: Move, request: ChatRequest, generator: random.Random) -> Move:
    """Surround the text with a greeting and a question."""
    return replace(move, text=f"Sure! Here you go: {move.text} Is there anything else I can do for you?")


def unreliable(move: Move, request: ChatRequest, generator: random.Random) -> Move:
    """Apply one of three faults at random; each of them makes the trial fail."""
    return generator.choice((only_prose, says_done_too_early, wrong_value))(move, request, generator)


def _change_types(arguments: dict[str, object]) -> dict[str, object]:
    if any(isinstance(value, list) and value for value in arguments.values()):
        return {key: value[0] if isinstance(value, list) and value else value for key, value in arguments.items()}
    return dict.fromkeys(arguments, 7)


def _change_last_value(arguments: dict[str, object]) -> dict[str, object]:
    """Replace the last argument that is not a reason.

    If it is a list of objects, the last member of the last object is replaced.
    """
    candidates = [key for key in arguments if key not in REASON_KEYS]
    key = candidates[-1] if candidates else ""
    value = arguments.get(key)
    if isinstance(value, list) and value and isinstance(value[-1], dict):
        return arguments | {key: [*value[:-1], _change_last_value(value[-1])]}
    return arguments | {key: "something else"} if key else arguments


def _lengthen_value(arguments: dict[str, object]) -> dict[str, object]:
    """Set a long `value` in the last object of the last argument, if that is a list of objects."""
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
