"""From a request to an answer: what a persona says, whether it drifts this time, and how long it takes.

Whether a trial drifts is drawn once, from seed and persona, so a persona's rate is a rate of trials however many
turns they have. What a turn looks like is drawn from seed, persona and turn.
"""

import math
import random
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from toolbench.engine.messages import JsonObject
from toolbench.providers.simulated.behaviour_faults import MOVE_DRIFTS
from toolbench.providers.simulated.chat_request import Conversation
from toolbench.providers.simulated.completions import complete
from toolbench.providers.simulated.error_replies import EVENTS, FAILURES, Reply, error_reply
from toolbench.providers.simulated.legacy_functions import newer_request
from toolbench.providers.simulated.next_move import Move, next_move
from toolbench.providers.simulated.personas import Persona
from toolbench.providers.simulated.response_faults import ANY_SHAPES, CALL_SHAPES, function_call, message_of
from toolbench.providers.simulated.seeded_random import chance
from toolbench.providers.simulated.stream_events import LINE_DRIFTS, Chunks
from toolbench.providers.simulated.text_format_faults import TEXT_FAILURES, TEXT_SHAPES
from toolbench.providers.simulated.vendor_requirements import BROUGHT, DEMANDS
from toolbench.providers.simulated.wire_formats import CHAT, Voice

REMEMBERED = 10_000
TOOLS_DROPPED = "tools_dropped"  # the one drift of hearing: the request is read without its tools
ONLY_FUNCTIONS = "only_functions"  # another: tools are passed over, the older functions are heard
ALL_FAILURES = FAILURES | DEMANDS | TEXT_FAILURES
ALL_CALL_SHAPES = CALL_SHAPES | TEXT_SHAPES | BROUGHT | {ONLY_FUNCTIONS: function_call}
SHAPES = ALL_CALL_SHAPES | ANY_SHAPES


@dataclass(frozen=True, slots=True)
class Answer:
    """`drifted` says whether this very answer carries the persona's drift."""

    reply: Reply
    drifted: bool
    seconds: float


@dataclass(slots=True)
class Refusals:
    """Which turns a persona that recovers has refused: the next try of the same turn is served, and forgets it, so
    that a repeated trial sees the same again."""

    seen: OrderedDict[tuple[object, ...], None] = field(default_factory=OrderedDict)

    def first_time(self, *turn: object) -> bool:
        if turn in self.seen:
            del self.seen[turn]
            return False
        self.seen[turn] = None
        if len(self.seen) > REMEMBERED:
            self.seen.popitem(last=False)
        return True


def answer(
    body: JsonObject, persona: Persona, refusals: Refusals, voice: Voice = CHAT, beside: Sequence[Persona] = ()
) -> Answer:
    """Return what the persona answers to a body, in the shape in which it is spoken to. It has the drifts of the
    personas `beside` it as well, each with that persona's own rate, places and chance."""
    cast = (persona, *beside)
    older = any(one.drift == ONLY_FUNCTIONS for one in cast)
    try:
        conversation = voice.hears(newer_request(body) if older else body)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        refused = error_reply(400, f"{error} (simulated)", "invalid_request_error")
        return Answer(voice.refuses(refused), drifted=False, seconds=0)
    seconds = _seconds(persona, conversation)
    drifting = [one for one in cast if _drifts(one, conversation)]
    for one in drifting:
        if one.drift in ALL_FAILURES and (failed := _failed(one, conversation, refusals)) is not None:
            return Answer(voice.refuses(failed), drifted=True, seconds=seconds)
    completion, drifted = _completion(persona, drifting, conversation)
    if not body.get("stream"):
        return Answer(Reply(voice.whole(completion)), drifted, seconds)
    events = voice.cuts(completion, _turn(persona, conversation), with_usage=_wants_usage(body))
    chunks = before = voice.encodes(events)
    for one in drifting:
        if _befalls(one, next_move(conversation)):
            if one.drift in voice.drifts:
                voice.drifts[one.drift](events)
                chunks = voice.encodes(events)
            chunks = LINE_DRIFTS.get(one.drift, _as_they_are)(chunks)
    return Answer(Reply(content_type=EVENTS, chunks=chunks), drifted or chunks != before, seconds)


def _drifts(persona: Persona, conversation: Conversation) -> bool:
    return bool(persona.drift) and chance(conversation.seed, persona.slug, "drift").random() < persona.rate


def _as_they_are(chunks: Chunks) -> Chunks:
    return chunks


def _wants_usage(body: JsonObject) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


def _failed(persona: Persona, conversation: Conversation, refusals: Refusals) -> Reply | None:
    if persona.once:
        turn = (persona.slug, conversation.seed, conversation.question, conversation.turns)
        if not refusals.first_time(*turn):
            return None
    return ALL_FAILURES[persona.drift](conversation)


def _completion(persona: Persona, drifting: Sequence[Persona], conversation: Conversation) -> tuple[JsonObject, bool]:
    """The completion, and whether it differs from a competent one."""
    competent = move = next_move(conversation)
    if any(one.drift == TOOLS_DROPPED for one in drifting):
        conversation = replace(conversation, functions=())
        move = next_move(conversation)
    befallen = [one for one in drifting if _befalls(one, competent)]
    for one in befallen:
        move = _played(one, move, conversation)
    turn = _turn(persona, conversation)
    completion = complete(move, conversation, persona.slug, turn)
    shaping = [one for one in befallen if one.drift in SHAPES]
    shaped = False
    for one in shaping:
        if _takes_shape(one, completion):
            SHAPES[one.drift](completion, turn)
            shaped = True
    return completion, shaped or move != competent


def _turn(persona: Persona, conversation: Conversation) -> random.Random:
    return chance(conversation.seed, persona.slug, "turn", conversation.turns)


def _befalls(persona: Persona, move: Move) -> bool:
    if persona.once and move.tried:
        return False
    return "any" in persona.places or move.place in persona.places


def _played(persona: Persona, competent: Move, conversation: Conversation) -> Move:
    drift = MOVE_DRIFTS.get(persona.drift)
    return drift(competent, conversation, chance(conversation.seed, persona.slug, "move")) if drift else competent


def _takes_shape(persona: Persona, completion: JsonObject) -> bool:
    return persona.drift in ANY_SHAPES or (persona.drift in ALL_CALL_SHAPES and "tool_calls" in message_of(completion))


def _seconds(persona: Persona, conversation: Conversation) -> float:
    draw = chance(conversation.seed, persona.slug, "latency", conversation.turns)
    return persona.median_ms / 1000 * math.exp(persona.spread * draw.gauss(0, 1))
