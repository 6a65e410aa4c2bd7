"""Checks of constraints and sampling options: whether they are taken, and whether they have their effect."""

from collections.abc import Sequence

from toolbench.engine.messages import JsonObject
from toolbench.engine.reading import text_of
from toolbench.providers.probing.prober import Heard, Prober, Reply, Wish
from toolbench.providers.probing.values import Check, untold
from toolbench.providers.upstream_error import parse_json

FEW = 4  # tokens
_ASKED: list[JsonObject] = [{"role": "user", "content": "What is the capital of Norway?"}]
_VERDICT: JsonObject = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["kestrel"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}
_SCHEMA: JsonObject = {"type": "json_schema", "json_schema": {"name": "probe", "strict": True, "schema": _VERDICT}}
_GRAMMAR = 'root ::= "kestrel"'


async def check_constraints(prober: Prober) -> Check:
    """A question whose true answer the constraint forbids: who honours it cannot say Oslo."""
    room = {prober.limit_name: 64, "temperature": 0}
    schema = await prober.post({"messages": _ASKED, "response_format": _SCHEMA, **room})
    grammar = await prober.post({"messages": _ASKED, "grammar": _GRAMMAR, **room})
    replies = (schema, grammar)
    numbers = tuple(reply.number for reply in replies)
    if all(reply.error is not None and reply.error.infrastructure for reply in replies):
        return untold("constraints", schema.error, numbers)
    held = [
        *(["response_format"] if parse_json(_said(schema)) == {"verdict": "kestrel"} else []),
        *(["grammar"] if _said(grammar).strip() == "kestrel" else []),
    ]
    words = f"JSON Schema is {_fate(schema, held, 'response_format')}, a grammar is {_fate(grammar, held, 'grammar')}."
    return Check("constraints", "passed" if held else "failed", words, {"constrained": held}, numbers)


def _said(reply: Reply) -> str:
    return text_of(reply.answer.message) if reply.answer else ""


def _fate(reply: Reply, held: Sequence[str], name: str) -> str:
    if reply.error is not None:
        return "refused" if not reply.error.infrastructure else "not told"
    return "honoured" if name in held else "taken and dropped"


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
    """A limit of four tokens must cut a long answer."""
    heard = await prober.ask(Wish("", "Count from one to fifty in words.", options={prober.limit_name: FEW}))
    if heard.error is not None or heard.turn is None:
        return untold("max_tokens", heard.error, heard.numbers)
    used = heard.turn.usage.output_tokens if heard.turn.usage else None
    if heard.turn.finish_reason == "length" and (used is None or used <= 2 * FEW):
        return _honoured("max_tokens", heard.numbers)
    if len(heard.turn.text.split()) > 2 * FEW:
        return _ignored("max_tokens", heard.numbers)
    said = "Could not be told: the answer was short anyway."
    return Check("max_tokens", "unknown", said, exchanges=heard.numbers)


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
    """Whether a raw completion endpoint continues a prompt."""
    reply = await prober.post({"prompt": "One, two, three,", "max_tokens": 8}, "completions")
    numbers = (reply.number,)
    choices = reply.payload.get("choices") if isinstance(reply.payload, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(first, dict) and isinstance(first.get("text"), str):
        said = "A raw prompt is continued: the method template can be used where its dialect is known."
        return Check("completion", "passed", said, {"raw_completion": True}, numbers)
    if reply.status in (400, 404, 405, 422, 501):
        return Check("completion", "failed", "There is no raw completion here.", {"raw_completion": False}, numbers)
    return untold("completion", reply.error, numbers)
