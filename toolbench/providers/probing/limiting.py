"""Checks of constraints and sampling options: whether they are taken, and whether they have their effect."""

from collections.abc import Sequence
from typing import Any

from toolbench.engine.messages import JsonObject
from toolbench.engine.transforms.requests import LIMITS
from toolbench.engine.wires import wire_named
from toolbench.providers.probing.conversing import MESSAGES
from toolbench.providers.probing.prober import Heard, Prober, Reply, Wish
from toolbench.providers.probing.values import Check, untold
from toolbench.providers.upstream_error import parse_json

CHAT = "chat"  # a wire
FEW = 4  # tokens
_ASKED: list[JsonObject] = [{"role": "user", "content": "What is the capital of Norway?"}]
_VERDICT: JsonObject = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["kestrel"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}
_PATTERNED: JsonObject = {**_VERDICT, "properties": {"verdict": {"type": "string", "pattern": "^kestrel$"}}}


def _schema_format(schema: JsonObject, **more: bool) -> JsonObject:
    return {"type": "json_schema", "json_schema": {"name": "probe", **more, "schema": schema}}


_LOOSE, _STRICT = _schema_format(_VERDICT), _schema_format(_VERDICT, strict=True)
_GBNF, _LARK = 'root ::= "kestrel"', '%llguidance {}\nstart: "kestrel"'
# By constraint, what asks for it: the first that holds is the one that is used. OpenAI promises nothing without strict.
_HELD: dict[str, JsonObject] = {
    "grammar": {"grammar": _LARK},
    "gbnf": {"grammar": _GBNF},
    "structured_outputs": {"structured_outputs": {"json": _VERDICT}},
    "structured_grammar": {"structured_outputs": {"grammar": _GBNF}},
    "ebnf": {"ebnf": _GBNF},
    "strict": {"response_format": _STRICT},
    "response_format": {"response_format": _LOOSE},
    "tgi_grammar": {"response_format": {"type": "json", "value": _VERDICT}},
    "fireworks_grammar": {"response_format": {"type": "grammar", "grammar": _GBNF}},
}
_HELD_IN_MESSAGES: dict[str, JsonObject] = {"output_config": {"response_format": _LOOSE}}


async def check_constraints(prober: Prober) -> Check:
    """A question whose true answer the constraint forbids: who honours it cannot say Oslo."""
    asked = _HELD_IN_MESSAGES if prober.endpoint.wire == MESSAGES else _HELD
    replies = {name: await _constrained(prober, field) for name, field in asked.items()}
    numbers = tuple(reply.number for reply in replies.values())
    if all(reply.error is not None and not reply.refused for reply in replies.values()):
        return untold("constraints", next(iter(replies.values())).error, numbers)
    held = [name for name, reply in replies.items() if _kept(reply)]
    words = "; ".join(f"{name}: {_fate(reply, held=name in held)}" for name, reply in replies.items())
    if "response_format" in held:
        reply = await _constrained(prober, {"response_format": _schema_format(_PATTERNED)})
        numbers = (*numbers, reply.number)
        if not _kept(reply) and (reply.error is None or reply.refused):
            held[held.index("response_format")] = "plain_schema"
            words = f"{words}; its patterns: {_fate(reply, held=False)}, so plain_schema"
    return Check("constraints", "passed" if held else "failed", f"{words}.", {"constrained": held}, numbers)


async def _constrained(prober: Prober, field: JsonObject) -> Reply:
    return await prober.post({"messages": _ASKED, **field, prober.limit_name: 64, "temperature": 0})


def _kept(reply: Reply) -> bool:
    return reply.text.strip() == "kestrel" or parse_json(reply.text) == {"verdict": "kestrel"}


def _fate(reply: Reply, *, held: bool) -> str:
    if reply.error is not None:
        return "refused" if reply.refused else "not told"
    return "honoured" if held else "taken and dropped"


async def check_strict(prober: Prober) -> Check:
    """Whether a tool marked strict is taken; whether it is held to could not be seen from one answer."""
    parameters = {**_VERDICT, "properties": {"verdict": {"type": "string"}}}
    function = {"name": "probe_verdict", "description": "Takes a verdict.", "strict": True, "parameters": parameters}
    tool = {"type": "function", "function": function}
    reply = await prober.post({"messages": _ASKED, "tools": [tool], prober.limit_name: 64})
    numbers = (reply.number,)
    if reply.error is None:
        return Check("strict", "passed", "A tool marked strict is taken.", {"supports_strict": True}, numbers)
    if reply.error.infrastructure:
        return untold("strict", reply.error, numbers)
    said = f"A tool marked strict is refused: {reply.error.message}"
    return Check("strict", "failed", said, {"supports_strict": False}, numbers)


async def check_max_tokens(prober: Prober) -> Check:
    """A limit of four tokens must cut a long answer; where it does not, the other name of it is tried."""
    names = dict.fromkeys((prober.limit_name, *(LIMITS if prober.endpoint.wire == CHAT else ())))
    numbers: tuple[int, ...] = ()
    for name in names:
        heard = await prober.ask(Wish("", "Count from one to fifty in words.", options=_only(name, prober)))
        numbers = (*numbers, *heard.numbers)
        if heard.error is not None or heard.turn is None:
            return untold("max_tokens", heard.error, numbers)
        used = heard.turn.usage.output_tokens if heard.turn.usage else None
        if heard.turn.finish_reason == "length" and (used is None or used <= 2 * FEW):
            known: JsonObject = {"honours": ["max_tokens"], "limit_name": name}
            return Check("max_tokens", "passed", f"{name} has its effect.", known, numbers)
        if len(heard.turn.text.split()) <= 2 * FEW:
            said = "Could not be told: the answer was short anyway."
            return Check("max_tokens", "unknown", said, exchanges=numbers)
    return _ignored("max_tokens", numbers)


def _only(name: str, prober: Prober) -> JsonObject:
    """A limit under this name alone; null takes the probe's own away."""
    return {name: FEW} if name == prober.limit_name else {prober.limit_name: None, name: FEW}


async def check_stop(prober: Prober) -> Check:
    """A stop word must end the answer before it."""
    wish = Wish("", "Write exactly this: one two three four five six", options={"stop": ["four"]})
    heard = await prober.ask(wish)
    if heard.error is not None or heard.turn is None:
        return untold("stop", heard.error, heard.numbers)
    text = heard.turn.text.lower()
    if "four" in text:
        return _ignored("stop", heard.numbers)
    if "three" in text:
        return _honoured("stop", heard.numbers)
    return Check("stop", "unknown", "Could not be told: the answer never came to the stop word.", {}, heard.numbers)


async def check_temperature(prober: Prober) -> Check:
    """The same open question twice at temperature 0."""
    heard = [await prober.ask(_open({"temperature": 0})) for _ in range(2)]
    numbers, texts = _told(heard)
    if len(texts) < 2:
        return untold("temperature", heard[-1].error, numbers)
    if len(set(texts)) == 1:
        said = "Two answers at temperature 0 are equal."
        return Check("temperature", "passed", said, {"honours": ["temperature"]}, numbers)
    return Check("temperature", "failed", "Two answers at temperature 0 differ.", {}, numbers)


async def check_seed(prober: Prober) -> Check:
    """One seed twice and another once at temperature 1: equal, equal, different."""
    heard = [await prober.ask(_open({"temperature": 1, "seed": seed})) for seed in (11, 11, 12)]
    numbers, texts = _told(heard)
    if len(texts) < 3:
        return untold("seed", next((one.error for one in heard if one.error), None), numbers)
    if texts[0] != texts[1]:
        return _ignored("seed", numbers)
    if texts[0] != texts[2]:
        return _honoured("seed", numbers)
    said = "Could not be told: another seed gives the same answer."
    return Check("seed", "unknown", said, exchanges=numbers)


def _open(options: JsonObject) -> Wish:
    return Wish("", "Invent a name for a small boat. Say only the name.", options=options)


def _told(heard: Sequence[Heard]) -> tuple[tuple[int, ...], list[str]]:
    numbers = tuple(number for one in heard for number in one.numbers)
    return numbers, [one.turn.text for one in heard if one.turn is not None]


def _honoured(option: str, numbers: tuple[int, ...]) -> Check:
    return Check(option, "passed", f"{option} has its effect.", {"honours": [option]}, numbers)


def _ignored(option: str, numbers: tuple[int, ...]) -> Check:
    return Check(option, "failed", f"{option} is taken without effect.", {"ignores": [option]}, numbers)


async def check_completion(prober: Prober) -> Check:
    """Whether a raw completion endpoint continues a prompt: OpenAI's, else llama.cpp's own. Beside Messages there is
    none that could be used."""
    if prober.endpoint.wire == MESSAGES:
        said = "An endpoint that speaks Messages takes no raw prompt."
        return Check("completion", "failed", said, {"raw_completion": False})
    numbers: tuple[int, ...] = ()
    for name in ("completions", "llama"):
        wire = wire_named(name)
        encoded, _ = wire.encode({"prompt": "One, two, three,", "max_tokens": 8})
        reply = await prober.post_as_it_is(encoded, wire.path)
        numbers = (*numbers, reply.number)
        if _continues(reply.payload):
            said = (
                f"A raw prompt is continued by {wire.path}: the method template can be used where its dialect is known."
            )
            known: JsonObject = {"raw_completion": True, "prompt_endpoint": name}
            return Check("completion", "passed", said, known, numbers)
        if reply.status not in (400, 404, 405, 422, 501):
            return untold("completion", reply.error, numbers)
    return Check("completion", "failed", "There is no raw completion here.", {"raw_completion": False}, numbers)


def _continues(payload: Any) -> bool:
    """Whether an answer has a text where OpenAI's completion has it, or llama.cpp's."""
    told = payload if isinstance(payload, dict) else {}
    choices = told.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return isinstance(first.get("text") if isinstance(first, dict) else told.get("content"), str)
