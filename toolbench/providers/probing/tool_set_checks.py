"""Checks of which names, how many tools and which schema keywords an endpoint accepts.

An error counts only if it is a refusal of the request and if the endpoint accepts a plain tool.
"""

import re
from collections.abc import Sequence

from toolbench.engine.types import JsonObject
from toolbench.providers.probing.check_result import ProbeCheck, build_inconclusive
from toolbench.providers.probing.prober import ECHO_TOOL, PostResult, Prober

MANY_TOOLS = 129  # one more than OpenAI's limit
LONG_NAME_CHARS = 65  # one more than OpenAI's limit
MAX_ROUNDS = 5  # requests of `check_keywords` with keywords in their schema
_DOTTED_NAME, _LONG_NAME = "probe.echo", "probe_".ljust(LONG_NAME_CHARS, "e")
# Such as ^[a-zA-Z0-9_-]{1,64}$ in the text of an error.
_PATTERN_IN_ERROR = re.compile(r"\^(?:\[[^\[\]\s]+\](?:\{\d{1,4}(?:,\d{0,4})?\}|[+*?])?){1,4}\$")
_REJECTION_CODES = ("request_rejected", "unprocessable")
_TEXT_SCHEMA: JsonObject = {"type": "string"}
_SCHEMA_BY_KEYWORD: dict[str, JsonObject] = {
    "anyOf": {"anyOf": [_TEXT_SCHEMA, {"type": "integer"}]},
    "oneOf": {"oneOf": [_TEXT_SCHEMA, {"type": "integer"}]},
    "allOf": {"allOf": [_TEXT_SCHEMA]},
    "not": {"type": "string", "not": {"enum": ["a"]}},
    "const": {"const": "a"},
    "default": {"type": "string", "default": "a"},
    "pattern": {"type": "string", "pattern": "^a+$"},
    "format": {"type": "string", "format": "uuid"},
    "minLength": {"type": "string", "minLength": 1},
    "exclusiveMinimum": {"type": "integer", "exclusiveMinimum": 0},
    "multipleOf": {"type": "integer", "multipleOf": 2},
    "maxItems": {"type": "array", "items": _TEXT_SCHEMA, "maxItems": 4},
    "uniqueItems": {"type": "array", "items": _TEXT_SCHEMA, "uniqueItems": True},
    "prefixItems": {"type": "array", "prefixItems": [_TEXT_SCHEMA]},
    "additionalProperties": {"type": "object", "properties": {}, "additionalProperties": False},
    "patternProperties": {"type": "object", "patternProperties": {"^a": _TEXT_SCHEMA}},
}
_COMMON_WORDS = ("not", "const", "default", "pattern", "format")  # count as keywords only in quotes or in a path


async def check_names(prober: Prober) -> ProbeCheck:
    """Check whether the endpoint accepts a tool name with a dot, and one of `LONG_NAME_CHARS` characters.

    The pattern for names is the one that a refusal quotes, else one that follows from the refused names.
    """
    replies = {name: await _post_tools(prober, _build_function(name)) for name in (_DOTTED_NAME, _LONG_NAME)}
    exchange_numbers = tuple(reply.exchange_number for reply in replies.values())
    refused_names = [name for name, reply in replies.items() if reply.error is not None]
    if not refused_names:
        message = f"A tool's name may have a dot and {LONG_NAME_CHARS} characters."
        return ProbeCheck("names", "passed", message, exchanges=exchange_numbers)
    if inconclusive := await _find_other_error("names", prober, [replies[name] for name in refused_names]):
        return inconclusive
    pattern = _find_pattern([replies[name] for name in refused_names], refused_names)
    if not pattern and _LONG_NAME in refused_names:
        shorter = await _post_tools(prober, _build_function(_LONG_NAME[:-1]))
        exchange_numbers = (*exchange_numbers, shorter.exchange_number)
        if shorter.error is not None:
            message = f"A tool's name of {LONG_NAME_CHARS} characters is refused; the limit is unknown."
            return ProbeCheck("names", "failed", message, exchanges=exchange_numbers)
    features = " or ".join(
        {_DOTTED_NAME: "a dot", _LONG_NAME: f"{LONG_NAME_CHARS} characters"}[name] for name in refused_names
    )
    characters = "[a-zA-Z0-9_-]" if _DOTTED_NAME in refused_names else "[a-zA-Z0-9_.-]"
    pattern = pattern or f"^{characters}{f'{{1,{LONG_NAME_CHARS - 1}}}' if _LONG_NAME in refused_names else '+'}$"
    return ProbeCheck(
        "names",
        "failed",
        f"The endpoint refuses a tool's name with {features}.",
        {"name_pattern": pattern},
        exchange_numbers,
    )


def _find_pattern(replies: Sequence[PostResult], refused_names: Sequence[str]) -> str:
    """Return the first pattern in the errors that explains the refusals, "" for none.

    It matches the name of `ECHO_TOOL` and none of the refused names. Only patterns of character classes and counts are
    used, so that an endpoint's text cannot cause a slow search.
    """
    for quoted in _PATTERN_IN_ERROR.findall(" ".join(map(_join_error_text, replies))):
        try:
            pattern = re.compile(quoted)
        except re.error:
            continue
        if pattern.search(ECHO_TOOL.name) and not any(pattern.search(name) for name in refused_names):
            return str(quoted)
    return ""


async def check_max_tools(prober: Prober) -> ProbeCheck:
    """Check how many tools one request may have, starting with `MANY_TOOLS`.

    If the endpoint refuses them, the limit is the greatest number below `MANY_TOOLS` that the refusal states, else
    `MANY_TOOLS` - 1. The limit is reported only if the endpoint accepts that many tools and refuses one more.
    """
    reply = await _post_tools(prober, *_build_functions(MANY_TOOLS))
    exchange_numbers: tuple[int, ...] = (reply.exchange_number,)
    if reply.error is None:
        return ProbeCheck(
            "max_tools", "passed", f"{MANY_TOOLS} tools in one request are accepted.", exchanges=exchange_numbers
        )
    if inconclusive := await _find_other_error("max_tools", prober, [reply]):
        return inconclusive
    stated = [int(number) for number in re.findall(r"\d+", _join_error_text(reply)) if 0 < int(number) < MANY_TOOLS]
    max_tools = max(stated, default=MANY_TOOLS - 1)
    at_limit = await _post_tools(prober, *_build_functions(max_tools))
    above_limit = (
        await _post_tools(prober, *_build_functions(max_tools + 1))
        if at_limit.error is None and max_tools + 1 < MANY_TOOLS
        else reply
    )
    exchange_numbers = tuple(dict.fromkeys((*exchange_numbers, at_limit.exchange_number, above_limit.exchange_number)))
    if at_limit.error is not None or not _is_rejected(above_limit):
        message = f"{MANY_TOOLS} tools in one request are refused; the limit is unknown."
        return ProbeCheck("max_tools", "failed", message, exchanges=exchange_numbers)
    message = f"{max_tools} tools in one request are accepted, one more is refused."
    return ProbeCheck("max_tools", "failed", message, {"max_tools": max_tools}, exchange_numbers)


async def check_keywords(prober: Prober) -> ProbeCheck:
    """Check which schema keywords are accepted.

    A schema with all keywords is sent first. Keywords that a refusal names are removed before the next request. At most
    `MAX_ROUNDS` such requests are sent.
    """
    remaining, refused_keywords, exchange_numbers = dict(_SCHEMA_BY_KEYWORD), list[str](), tuple[int, ...]()
    for _ in range(MAX_ROUNDS):
        reply = await _post_tools(prober, _build_function_with_properties(remaining))
        exchange_numbers = (*exchange_numbers, reply.exchange_number)
        if reply.error is None:
            break
        if not refused_keywords and (inconclusive := await _find_other_error("keywords", prober, [reply])):
            return inconclusive
        error_text = _join_error_text(reply) if _is_rejected(reply) else ""
        named_keywords = [keyword for keyword in remaining if _mentions_keyword(error_text, keyword)]
        if not named_keywords or len(named_keywords) == len(remaining):
            break
        refused_keywords += named_keywords
        remaining = {keyword: schema for keyword, schema in remaining.items() if keyword not in named_keywords}
    if refused_keywords:
        message = f"The endpoint refuses these keywords in a tool's schema: {', '.join(refused_keywords)}."
        return ProbeCheck("keywords", "failed", message, {"schema_dialect": refused_keywords}, exchange_numbers)
    if reply.error is not None:
        message = f"A schema with {len(remaining)} keywords is refused without naming one: {reply.error.message}"
        return ProbeCheck("keywords", "failed", message, exchanges=exchange_numbers)
    message = f"The endpoint accepts these keywords in a tool's schema: {', '.join(remaining)}."
    return ProbeCheck("keywords", "passed", message, {"schema_dialect": []}, exchange_numbers)


def _mentions_keyword(message: str, keyword: str) -> bool:
    prefix = r"['\"`./\[$]" if keyword in _COMMON_WORDS else r"(?<!\w)"
    return re.search(rf"{prefix}{keyword}(?!\w)", message) is not None


async def _find_other_error(slug: str, prober: Prober, replies: Sequence[PostResult]) -> ProbeCheck | None:
    """Return an inconclusive result if the errors may have another reason than the one tested, else None.

    This is so if one of the errors is not a refusal of the request, or if the endpoint refuses a plain tool, too.
    """
    exchange_numbers = tuple(reply.exchange_number for reply in replies)
    for reply in replies:
        if not _is_rejected(reply):
            return build_inconclusive(slug, reply.error, exchange_numbers)
    plain = await _post_tools(prober, _build_function(ECHO_TOOL.name))
    return (
        build_inconclusive(slug, plain.error, (*exchange_numbers, plain.exchange_number))
        if plain.error is not None
        else None
    )


def _is_rejected(reply: PostResult) -> bool:
    return reply.error is not None and reply.error.code in _REJECTION_CODES


def _join_error_text(reply: PostResult) -> str:
    return f"{reply.error.message} {reply.error.hint}" if reply.error else ""


async def _post_tools(prober: Prober, *functions: JsonObject) -> PostResult:
    tools = [{"type": "function", "function": function} for function in functions]
    messages = [{"role": "user", "content": "Say hello."}]
    return await prober.post({"messages": messages, "tools": tools, prober.limit_name: 16})


def _build_function(name: str) -> JsonObject:
    return {"name": name, "description": ECHO_TOOL.description, "parameters": ECHO_TOOL.parameters}


def _build_functions(count: int) -> list[JsonObject]:
    empty: JsonObject = {"type": "object", "properties": {}}
    return [{"name": f"t{index}", "description": "Nothing.", "parameters": empty} for index in range(count)]


def _build_function_with_properties(schemas: JsonObject) -> JsonObject:
    properties = {f"p{index}": schema for index, schema in enumerate(schemas.values())}
    return {**_build_function(ECHO_TOOL.name), "parameters": {"type": "object", "properties": properties}}
