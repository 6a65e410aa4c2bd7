"""Checks of constraints: which ones hold an answer, and whether tools may be marked strict."""

from toolbench.engine.messages import JsonObject
from toolbench.providers.http.error_body import parse_json
from toolbench.providers.probing.check_result import ProbeCheck, untold
from toolbench.providers.probing.prober import Prober, Reply

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


async def check_constraints(prober: Prober) -> ProbeCheck:
    """A question whose true answer the constraint forbids: who honours it cannot say Oslo."""
    asked = _HELD_IN_MESSAGES if prober.in_messages else _HELD
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
    return ProbeCheck("constraints", "passed" if held else "failed", f"{words}.", {"constrained": held}, numbers)


async def _constrained(prober: Prober, field: JsonObject) -> Reply:
    return await prober.post({"messages": _ASKED, **field, prober.limit_name: 64, "temperature": 0})


def _kept(reply: Reply) -> bool:
    return reply.text.strip() == "kestrel" or parse_json(reply.text) == {"verdict": "kestrel"}


def _fate(reply: Reply, *, held: bool) -> str:
    if reply.error is not None:
        return "refused" if reply.refused else "not told"
    return "honoured" if held else "taken and dropped"


async def check_strict(prober: Prober) -> ProbeCheck:
    """Whether a tool marked strict is taken; whether it is held to could not be seen from one answer."""
    parameters = {**_VERDICT, "properties": {"verdict": {"type": "string"}}}
    function = {"name": "probe_verdict", "description": "Takes a verdict.", "strict": True, "parameters": parameters}
    tool = {"type": "function", "function": function}
    reply = await prober.post({"messages": _ASKED, "tools": [tool], prober.limit_name: 64})
    numbers = (reply.number,)
    if reply.error is None:
        return ProbeCheck("strict", "passed", "A tool marked strict is taken.", {"supports_strict": True}, numbers)
    if reply.error.infrastructure:
        return untold("strict", reply.error, numbers)
    said = f"A tool marked strict is refused: {reply.error.message}"
    return ProbeCheck("strict", "failed", said, {"supports_strict": False}, numbers)
