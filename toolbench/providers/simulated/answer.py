"""Answer of a simulated model to a request: its content, whether its fault occurs, and its latency.

Whether the fault occurs in a trial is drawn once, from the seed and the model, so a model's rate is a rate of trials,
however many turns they have. The form of a turn is drawn from seed, model and turn.
"""

import math
import random
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.chat_request import ChatRequest
from toolbench.providers.simulated.completions import build_completion
from toolbench.providers.simulated.error_replies import EVENTS_TYPE, FAILURES, Reply, build_error_reply
from toolbench.providers.simulated.faults.behaviour import MOVE_FAULTS
from toolbench.providers.simulated.faults.response import (
    ANY_SHAPE_FAULTS,
    CALL_SHAPE_FAULTS,
    function_call,
    get_message,
)
from toolbench.providers.simulated.faults.text_format import TEXT_FAILURES, TEXT_FORMAT_FAULTS
from toolbench.providers.simulated.faults.vendor_requirements import REQUIREMENT_ADDITIONS, REQUIREMENTS
from toolbench.providers.simulated.legacy_functions import convert_legacy_request
from toolbench.providers.simulated.next_move import Move, choose_next_move
from toolbench.providers.simulated.personas import Persona
from toolbench.providers.simulated.seeded_random import build_random
from toolbench.providers.simulated.stream_events import LINE_FAULTS, Chunks
from toolbench.providers.simulated.wire_formats import CHAT, SimulatedWireFormat

MAX_REMEMBERED_TURNS = 10_000
TOOLS_DROPPED = "tools_dropped"  # the request is read without its tools
ONLY_FUNCTIONS = "only_functions"  # tools are ignored, the older functions are read
ALL_FAILURES = FAILURES | REQUIREMENTS | TEXT_FAILURES
ALL_CALL_SHAPE_FAULTS = CALL_SHAPE_FAULTS | TEXT_FORMAT_FAULTS | REQUIREMENT_ADDITIONS | {ONLY_FUNCTIONS: function_call}
SHAPE_FAULTS = ALL_CALL_SHAPE_FAULTS | ANY_SHAPE_FAULTS


@dataclass(frozen=True, slots=True)
class SimulatedAnswer:
    """Answer with its latency in seconds; `has_fault` says whether a fault changed this answer."""

    reply: Reply
    has_fault: bool
    seconds: float


@dataclass(slots=True)
class RefusedTurns:
    """Turns that a recovering model has refused.

    The next attempt at the same turn is served and the turn is forgotten, so that a repeated trial gets the same
    answers. At most `MAX_REMEMBERED_TURNS` are kept, the newest ones.
    """

    seen: OrderedDict[tuple[object, ...], None] = field(default_factory=OrderedDict)

    def register_refusal(self, *turn: object) -> bool:
        """Return whether the turn is to be refused: True at the first attempt, False at the second."""
        if turn in self.seen:
            del self.seen[turn]
            return False
        self.seen[turn] = None
        if len(self.seen) > MAX_REMEMBERED_TURNS:
            self.seen.popitem(last=False)
        return True


def build_answer(
    body: JsonObject,
    persona: Persona,
    refusals: RefusedTurns,
    voice: SimulatedWireFormat = CHAT,
    beside: Sequence[Persona] = (),
) -> SimulatedAnswer:
    """Build the answer of a simulated model to a request body, in the wire format of the request.

    Args:
        body: the request body as JSON.
        persona: the simulated model.
        refusals: turns refused so far; updated by this call.
        voice: the wire format.
        beside: further models whose faults also apply, each with its own rate, places and random draws.
    """
    cast = (persona, *beside)
    older = any(persona.drift == ONLY_FUNCTIONS for persona in cast)
    try:
        conversation = voice.parse_request(convert_legacy_request(body) if older else body)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        refused = build_error_reply(400, f"{error} (simulated)", "invalid_request_error")
        return SimulatedAnswer(voice.render_error(refused), has_fault=False, seconds=0)
    seconds = _draw_latency_seconds(persona, conversation)
    drifting = [persona for persona in cast if _has_fault(persona, conversation)]
    for member in drifting:
        if member.drift in ALL_FAILURES and (failed := _build_failure(member, conversation, refusals)) is not None:
            return SimulatedAnswer(voice.render_error(failed), has_fault=True, seconds=seconds)
    completion, drifted = _build_completion(persona, drifting, conversation)
    if not body.get("stream"):
        return SimulatedAnswer(Reply(voice.render_body(completion)), drifted, seconds)
    events = voice.stream_events(completion, _build_turn_random(persona, conversation), with_usage=_wants_usage(body))
    chunks = before = voice.encode_events(events)
    for member in drifting:
        if _applies_to_move(member, choose_next_move(conversation)):
            if member.drift in voice.stream_faults:
                voice.stream_faults[member.drift](events)
                chunks = voice.encode_events(events)
            chunks = LINE_FAULTS.get(member.drift, _keep_chunks)(chunks)
    return SimulatedAnswer(Reply(content_type=EVENTS_TYPE, chunks=chunks), drifted or chunks != before, seconds)


def _has_fault(persona: Persona, conversation: ChatRequest) -> bool:
    return bool(persona.drift) and build_random(conversation.seed, persona.slug, "drift").random() < persona.rate


def _keep_chunks(chunks: Chunks) -> Chunks:
    return chunks


def _wants_usage(body: JsonObject) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


def _build_failure(persona: Persona, conversation: ChatRequest, refusals: RefusedTurns) -> Reply | None:
    if persona.once:
        turn = (persona.slug, conversation.seed, conversation.question, conversation.turns)
        if not refusals.register_refusal(*turn):
            return None
    return ALL_FAILURES[persona.drift](conversation)


def _build_completion(
    persona: Persona, drifting: Sequence[Persona], conversation: ChatRequest
) -> tuple[JsonObject, bool]:
    """Return the completion, and whether it differs from the correct one."""
    competent = move = choose_next_move(conversation)
    if any(persona.drift == TOOLS_DROPPED for persona in drifting):
        conversation = replace(conversation, functions=())
        move = choose_next_move(conversation)
    befallen = [persona for persona in drifting if _applies_to_move(persona, competent)]
    for member in befallen:
        move = _apply_move_fault(member, move, conversation)
    turn = _build_turn_random(persona, conversation)
    completion = build_completion(move, conversation, persona.slug, turn)
    shaping = [persona for persona in befallen if persona.drift in SHAPE_FAULTS]
    shaped = False
    for member in shaping:
        if _applies_to_completion(member, completion):
            SHAPE_FAULTS[member.drift](completion, turn)
            shaped = True
    return completion, shaped or move != competent


def _build_turn_random(persona: Persona, conversation: ChatRequest) -> random.Random:
    return build_random(conversation.seed, persona.slug, "turn", conversation.turns)


def _applies_to_move(persona: Persona, move: Move) -> bool:
    if persona.once and move.tried:
        return False
    return "any" in persona.places or move.place in persona.places


def _apply_move_fault(persona: Persona, competent: Move, conversation: ChatRequest) -> Move:
    drift = MOVE_FAULTS.get(persona.drift)
    return drift(competent, conversation, build_random(conversation.seed, persona.slug, "move")) if drift else competent


def _applies_to_completion(persona: Persona, completion: JsonObject) -> bool:
    return persona.drift in ANY_SHAPE_FAULTS or (
        persona.drift in ALL_CALL_SHAPE_FAULTS and "tool_calls" in get_message(completion)
    )


def _draw_latency_seconds(persona: Persona, conversation: ChatRequest) -> float:
    draw = build_random(conversation.seed, persona.slug, "latency", conversation.turns)
    return persona.median_ms / 1000 * math.exp(persona.spread * draw.gauss(0, 1))
