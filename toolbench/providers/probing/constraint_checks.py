"""Checks of which constraints an endpoint enforces and of whether it accepts strict tools."""

from toolbench.engine.types import JsonObject
from toolbench.engine.visible_text import is_blank
from toolbench.providers.http.error_body import parse_json
from toolbench.providers.probing.check_result import CheckOutcome, ProbeCheck, build_inconclusive
from toolbench.providers.probing.prober import PostResult, Prober

_QUESTION: list[JsonObject] = [{"role": "user", "content": "What is the capital of Norway?"}]
_VERDICT_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["kestrel"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}
_PATTERN_SCHEMA: JsonObject = {**_VERDICT_SCHEMA, "properties": {"verdict": {"type": "string", "pattern": "^kestrel$"}}}


def _build_schema_format(schema: JsonObject, **members: bool) -> JsonObject:
    return {"type": "json_schema", "json_schema": {"name": "probe", **members, "schema": schema}}


_LOOSE_FORMAT, _STRICT_FORMAT = (
    _build_schema_format(_VERDICT_SCHEMA),
    _build_schema_format(_VERDICT_SCHEMA, strict=True),
)
_GBNF_GRAMMAR, _LARK_GRAMMAR = 'root ::= "kestrel"', '%llguidance {}\nstart: "kestrel"'
# Request fields by constraint, in order of preference. OpenAI enforces a schema only with `strict`.
_FIELDS_BY_CONSTRAINT: dict[str, JsonObject] = {
    "grammar": {"grammar": _LARK_GRAMMAR},
    "gbnf": {"grammar": _GBNF_GRAMMAR},
    "structured_outputs": {"structured_outputs": {"json": _VERDICT_SCHEMA}},
    "structured_grammar": {"structured_outputs": {"grammar": _GBNF_GRAMMAR}},
    "ebnf": {"ebnf": _GBNF_GRAMMAR},
    "strict": {"response_format": _STRICT_FORMAT},
    "response_format": {"response_format": _LOOSE_FORMAT},
    "tgi_grammar": {"response_format": {"type": "json", "value": _VERDICT_SCHEMA}},
    "fireworks_grammar": {"response_format": {"type": "grammar", "grammar": _GBNF_GRAMMAR}},
}
_MESSAGES_FIELDS_BY_CONSTRAINT: dict[str, JsonObject] = {"output_config": {"response_format": _LOOSE_FORMAT}}


async def check_constraints(prober: Prober) -> ProbeCheck:
    """Check which constraints the endpoint enforces, with a question whose true answer they forbid.

    Asked for the capital of Norway, the model may answer only "kestrel" or, with a schema, {"verdict": "kestrel"}. If
    `response_format` is enforced, a further request checks a schema with a pattern; if the pattern is refused or
    ignored, the result has `plain_schema` in place of `response_format`.
    """
    fields = _MESSAGES_FIELDS_BY_CONSTRAINT if prober.uses_messages else _FIELDS_BY_CONSTRAINT
    replies = {name: await _post_constrained(prober, field) for name, field in fields.items()}
    exchange_numbers = tuple(reply.exchange_number for reply in replies.values())
    if all(map(_is_inconclusive, replies.values())):
        return build_inconclusive("constraints", next(iter(replies.values())).error, exchange_numbers)
    enforced = [name for name, reply in replies.items() if _is_enforced(reply)]
    description = "; ".join(
        f"{name}: {_describe_result(reply, is_enforced=name in enforced)}" for name, reply in replies.items()
    )
    if "response_format" in enforced:
        reply = await _post_constrained(prober, {"response_format": _build_schema_format(_PATTERN_SCHEMA)})
        exchange_numbers = (*exchange_numbers, reply.exchange_number)
        if not _is_enforced(reply) and not _is_inconclusive(reply):
            enforced[enforced.index("response_format")] = "plain_schema"
            description += (
                f"; a pattern in response_format: {_describe_result(reply, is_enforced=False)}, so plain_schema"
            )
    outcome: CheckOutcome = "passed" if enforced else "failed"
    return ProbeCheck("constraints", outcome, f"{description}.", {"constrained": enforced}, exchange_numbers)


async def _post_constrained(prober: Prober, field: JsonObject) -> PostResult:
    return await prober.post({"messages": _QUESTION, **field, **prober.default_options})


def _is_enforced(reply: PostResult) -> bool:
    return reply.text.strip() == "kestrel" or parse_json(reply.text) == {"verdict": "kestrel"}


def _is_inconclusive(reply: PostResult) -> bool:
    """Return whether a reply is an infrastructure error or a blank answer, as after truncated reasoning."""
    return not reply.is_refused if reply.error is not None else is_blank(reply.text)


def _describe_result(reply: PostResult, *, is_enforced: bool) -> str:
    if _is_inconclusive(reply):
        return "inconclusive"
    return "refused" if reply.is_refused else "enforced" if is_enforced else "ignored"


async def check_strict(prober: Prober) -> ProbeCheck:
    """Check whether a tool marked strict is accepted. Whether its schema is enforced is not checked."""
    parameters = {**_VERDICT_SCHEMA, "properties": {"verdict": {"type": "string"}}}
    function = {"name": "probe_verdict", "description": "Takes a verdict.", "strict": True, "parameters": parameters}
    tool = {"type": "function", "function": function}
    reply = await prober.post({"messages": _QUESTION, "tools": [tool], prober.limit_name: 64})
    exchange_numbers = (reply.exchange_number,)
    if reply.error is None:
        return ProbeCheck(
            "strict", "passed", "A tool marked strict is accepted.", {"supports_strict": True}, exchange_numbers
        )
    if reply.error.infrastructure:
        return build_inconclusive("strict", reply.error, exchange_numbers)
    message = f"A tool marked strict is refused: {reply.error.message}"
    return ProbeCheck("strict", "failed", message, {"supports_strict": False}, exchange_numbers)
