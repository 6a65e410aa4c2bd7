"""Answer of a simulated model to a request, with the faults that occur in it and its latency.

The seed and the model alone decide whether a trial has the model's fault. All turns of a trial have the same seed, so a
model's rate is the share of trials with the fault. Random details of an answer depend on seed, model and turn; those of
a fault of behaviour only on seed and model. For a request without a seed, all of this is random at each request.
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
from toolbench.providers.simulated.stream_events import LINE_FAULTS
from toolbench.providers.simulated.wire_formats import CHAT, SimulatedWireFormat

MAX_REMEMBERED_TURNS = 10_000
TOOLS_DROPPED = "tools_dropped"  # the model gets the request without its tools
ONLY_FUNCTIONS = "only_functions"  # the model reads OpenAI's older field `functions` and ignores `tools`
ALL_FAILURES = FAILURES | REQUIREMENTS | TEXT_FAILURES
ALL_CALL_SHAPE_FAULTS = CALL_SHAPE_FAULTS | TEXT_FORMAT_FAULTS | REQUIREMENT_ADDITIONS | {ONLY_FUNCTIONS: function_call}
SHAPE_FAULTS = ALL_CALL_SHAPE_FAULTS | ANY_SHAPE_FAULTS


@dataclass(frozen=True, slots=True)
class SimulatedAnswer:
    """Answer of a simulated model.

    Attributes:
        reply: the HTTP response.
        faults: faults that occur in this answer, each once.
        seconds: the latency.
    """

    reply: Reply
    faults: tuple[str, ...]
    seconds: float


@dataclass(slots=True)
class RefusedTurns:
    """Turns refused by models that refuse only the first attempt (`Persona.once`).

    The newest `MAX_REMEMBERED_TURNS` are kept. A turn is removed when it is attempted again, so that a later repeat of
    the trial gets the same answers.
    """

    turns: OrderedDict[tuple[object, ...], None] = field(default_factory=OrderedDict)

    def register_refusal(self, *turn: object) -> bool:
        """Register an attempt at a turn and return whether to refuse it.

        The first attempt is refused, the second is not, and so on.
        """
        if turn in self.turns:
            del self.turns[turn]
            return False
        self.turns[turn] = None
        if len(self.turns) > MAX_REMEMBERED_TURNS:
            self.turns.popitem(last=False)
        return True


def build_answer(
    body: JsonObject,
    persona: Persona,
    refusals: RefusedTurns,
    wire_format: SimulatedWireFormat = CHAT,
    further_personas: Sequence[Persona] = (),
) -> SimulatedAnswer:
    """Build the answer of a simulated model to a request.

    Args:
        body: the parsed request body.
        persona: the simulated model.
        refusals: turns refused so far; this function updates them.
        wire_format: the wire format of the request and the answer.
        further_personas: models whose faults the answer may have as well, each at its own rate.
    """
    personas = (persona, *further_personas)
    is_legacy = any(persona.drift == ONLY_FUNCTIONS for persona in personas)
    try:
        request = wire_format.parse_request(convert_legacy_request(body) if is_legacy else body)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        refusal = build_error_reply(400, f"{error} (simulated)", "invalid_request_error")
        return SimulatedAnswer(wire_format.render_error(refusal), faults=(), seconds=0)
    seconds = _draw_latency_seconds(persona, request)
    faulty = [persona for persona in personas if _is_faulty(persona, request)]
    for faulty_persona in faulty:
        if (failure := _build_failure(faulty_persona, request, refusals)) is not None:
            return SimulatedAnswer(wire_format.render_error(failure), faults=(faulty_persona.drift,), seconds=seconds)
    completion, faults = _build_completion(persona, faulty, request)
    if not body.get("stream"):
        return SimulatedAnswer(Reply(wire_format.render_body(completion)), tuple(dict.fromkeys(faults)), seconds)
    generator = _build_turn_generator(persona, request)
    events = wire_format.stream_events(completion, generator, with_usage=_requests_usage(body))
    chunks = wire_format.encode_events(events)
    move = choose_next_move(request)
    for fault in (persona.drift for persona in faulty if _applies_to_move(persona, move)):
        earlier_chunks = chunks
        if fault in wire_format.stream_faults:
            wire_format.stream_faults[fault](events)
            chunks = wire_format.encode_events(events)
        if fault in LINE_FAULTS:
            chunks = LINE_FAULTS[fault](chunks)
        if chunks != earlier_chunks:
            faults.append(fault)
    return SimulatedAnswer(Reply(content_type=EVENTS_TYPE, chunks=chunks), tuple(dict.fromkeys(faults)), seconds)


def _is_faulty(persona: Persona, request: ChatRequest) -> bool:
    """Return whether the model's fault occurs in the trial of this request."""
    return bool(persona.drift) and build_random(request.seed, persona.slug, "drift").random() < persona.rate


def _requests_usage(body: JsonObject) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


def _build_failure(persona: Persona, request: ChatRequest, refusals: RefusedTurns) -> Reply | None:
    """Return the error that the model sends instead of this answer, or None if its fault causes none."""
    if persona.drift not in ALL_FAILURES:
        return None
    if persona.once:
        turn = (persona.slug, request.seed, request.question, request.turns)
        if not refusals.register_refusal(*turn):
            return None
    return ALL_FAILURES[persona.drift](request)


def _build_completion(
    persona: Persona, faulty: Sequence[Persona], request: ChatRequest
) -> tuple[JsonObject, list[str]]:
    """Return the completion, and the faults by which it differs from that of a correct model.

    Args:
        persona: the model that answers.
        faulty: the models whose faults occur in this trial.
        request: the request.
    """
    faults: list[str] = []
    correct_move = move = choose_next_move(request)
    if any(persona.drift == TOOLS_DROPPED for persona in faulty):
        request = replace(request, functions=())
        move = choose_next_move(request)
        if move != correct_move:
            faults.append(TOOLS_DROPPED)
    affected = [persona for persona in faulty if _applies_to_move(persona, correct_move)]
    for affected_persona in affected:
        earlier_move, move = move, _apply_move_fault(affected_persona, move, request)
        if move != earlier_move:
            faults.append(affected_persona.drift)
    generator = _build_turn_generator(persona, request)
    completion = build_completion(move, request, persona.slug, generator)
    for fault in (persona.drift for persona in affected):
        if _is_shape_fault_of(fault, completion):
            SHAPE_FAULTS[fault](completion, generator)
            faults.append(fault)
    return completion, faults


def _build_turn_generator(persona: Persona, request: ChatRequest) -> random.Random:
    return build_random(request.seed, persona.slug, "turn", request.turns)


def _applies_to_move(persona: Persona, move: Move) -> bool:
    if persona.once and move.has_failed_before:
        return False
    return "any" in persona.places or move.place in persona.places


def _apply_move_fault(persona: Persona, move: Move, request: ChatRequest) -> Move:
    fault = MOVE_FAULTS.get(persona.drift)
    return fault(move, request, build_random(request.seed, persona.slug, "move")) if fault else move


def _is_shape_fault_of(fault: str, completion: JsonObject) -> bool:
    """Return whether the fault is one of form or text format that can occur in this completion."""
    return fault in ANY_SHAPE_FAULTS or (fault in ALL_CALL_SHAPE_FAULTS and "tool_calls" in get_message(completion))


def _draw_latency_seconds(persona: Persona, request: ChatRequest) -> float:
    generator = build_random(request.seed, persona.slug, "latency", request.turns)
    return persona.median_ms / 1000 * math.exp(persona.spread * generator.gauss(0, 1))
