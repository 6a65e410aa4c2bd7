"""Checks of the offered tools: which names, how many and which schema keywords an endpoint accepts.

Only a refusal of the request counts, and only where one plain tool is accepted.
"""

import re
from collections.abc import Sequence

from toolbench.engine.types import JsonObject
from toolbench.providers.probing.check_result import ProbeCheck, build_inconclusive
from toolbench.providers.probing.prober import ECHO_TOOL, PostResult, Prober

MANY_TOOLS = 129
LONG_NAME_CHARS = 65
MAX_ROUNDS = 5
_DOTTED_NAME, _LONG_NAME = "probe.echo", "probe_".ljust(LONG_NAME_CHARS, "e")
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
    """Check a tool name with a dot and one of 65 characters.

    The pattern for names is taken from the refusal where it states one, else it follows from which names were refused.
    """
    replies = {name: await _post_tools(prober, _build_function(name)) for name in (_DOTTED_NAME, _LONG_NAME)}
    numbers = tuple(reply.number for reply in replies.values())
    refused = [name for name, reply in replies.items() if reply.error is not None]
    if not refused:
        message = f"A dot is taken in a tool's name, and {LONG_NAME_CHARS} characters are."
        return ProbeCheck("names", "passed", message, exchanges=numbers)
    if trouble := await _find_other_error("names", prober, [replies[name] for name in refused]):
        return trouble
    pattern = _find_pattern([replies[name] for name in refused], refused)
    if not pattern and _LONG_NAME in refused:
        shorter = await _post_tools(prober, _build_function(_LONG_NAME[:-1]))
        numbers = (*numbers, shorter.number)
        if shorter.error is not None:
            message = f"A tool's name of {LONG_NAME_CHARS} characters is refused; the limit is unknown."
            return ProbeCheck("names", "failed", message, exchanges=numbers)
    features = " and ".join(
        {_DOTTED_NAME: "a dot", _LONG_NAME: f"{LONG_NAME_CHARS} characters"}[name] for name in refused
    )
    characters = "[a-zA-Z0-9_-]" if _DOTTED_NAME in refused else "[a-zA-Z0-9_.-]"
    pattern = pattern or f"^{characters}{f'{{1,{LONG_NAME_CHARS - 1}}}' if _LONG_NAME in refused else '+'}$"
    return ProbeCheck("names", "failed", f"Refused in a tool's name: {features}.", {"name_pattern": pattern}, numbers)


def _find_pattern(replies: Sequence[PostResult], refused: Sequence[str]) -> str:
    """Return a pattern quoted by a refusal that excludes the refused names but no plain name; "" for none.

    Only patterns of character classes and counts are read, so that an endpoint's text cannot cause a slow search.
    """
    for written in _PATTERN_IN_ERROR.findall(" ".join(map(_join_error_text, replies))):
        try:
            pattern = re.compile(written)
        except re.error:
            continue
        if pattern.search(ECHO_TOOL.name) and not any(pattern.search(name) for name in refused):
            return str(written)
    return ""


async def check_max_tools(prober: Prober) -> ProbeCheck:
    """Check how many tools one request may hold, beginning with 129.

    When 129 are refused, the number that the refusal states (128 without one) must be accepted and one more refused.
    """
    reply = await _post_tools(prober, *_build_functions(MANY_TOOLS))
    numbers: tuple[int, ...] = (reply.number,)
    if reply.error is None:
        return ProbeCheck("max_tools", "passed", f"{MANY_TOOLS} tools in one request are taken.", exchanges=numbers)
    if trouble := await _find_other_error("max_tools", prober, [reply]):
        return trouble
    below = [int(number) for number in re.findall(r"\d+", _join_error_text(reply)) if 0 < int(number) < MANY_TOOLS]
    most = max(below, default=MANY_TOOLS - 1)
    taken = await _post_tools(prober, *_build_functions(most))
    more = (
        await _post_tools(prober, *_build_functions(most + 1))
        if taken.error is None and most + 1 < MANY_TOOLS
        else reply
    )
    numbers = tuple(dict.fromkeys((*numbers, taken.number, more.number)))
    if taken.error is not None or not _is_rejected(more):
        message = f"{MANY_TOOLS} tools in one request are refused; the limit is unknown."
        return ProbeCheck("max_tools", "failed", message, exchanges=numbers)
    message = f"{most} tools in one request are taken, one more is refused."
    return ProbeCheck("max_tools", "failed", message, {"max_tools": most}, numbers)


async def check_keywords(prober: Prober) -> ProbeCheck:
    """Check which schema keywords are accepted.

    A schema with all keywords is sent; keywords that a refusal names are removed and it is sent again, at most
    `MAX_ROUNDS` times.
    """
    left, refused, numbers = dict(_SCHEMA_BY_KEYWORD), list[str](), tuple[int, ...]()
    for _ in range(MAX_ROUNDS):
        reply = await _post_tools(prober, _build_function_with_properties(left))
        numbers = (*numbers, reply.number)
        if reply.error is None:
            break
        if not refused and (trouble := await _find_other_error("keywords", prober, [reply])):
            return trouble
        named = [
            keyword for keyword in left if _is_rejected(reply) and _mentions_keyword(_join_error_text(reply), keyword)
        ]
        if not named or len(named) == len(left):
            break
        refused += named
        left = {keyword: schema for keyword, schema in left.items() if keyword not in named}
    if refused:
        message = f"Refused in a tool's schema: {', '.join(refused)}."
        return ProbeCheck("keywords", "failed", message, {"schema_dialect": refused}, numbers)
    if reply.error is not None:
        message = (
            f"A schema with {len(left)} keywords is refused, and the refusal names none of them: {reply.error.message}"
        )
        return ProbeCheck("keywords", "failed", message, exchanges=numbers)
    message = f"Taken in a tool's schema: {', '.join(left)}."
    return ProbeCheck("keywords", "passed", message, {"schema_dialect": []}, numbers)


def _mentions_keyword(message: str, keyword: str) -> bool:
    before = r"['\"`./\[$]" if keyword in _COMMON_WORDS else r"(?<!\w)"
    return re.search(rf"{before}{keyword}(?!\w)", message) is not None


async def _find_other_error(slug: str, prober: Prober, replies: Sequence[PostResult]) -> ProbeCheck | None:
    """Return an inconclusive check where the errors have another reason than the one tested, else None.

    That is so when one is no refusal of the request, or when a plain tool is refused too.
    """
    numbers = tuple(reply.number for reply in replies)
    for reply in replies:
        if not _is_rejected(reply):
            return build_inconclusive(slug, reply.error, numbers)
    plain = await _post_tools(prober, _build_function(ECHO_TOOL.name))
    return build_inconclusive(slug, plain.error, (*numbers, plain.number)) if plain.error is not None else None


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
    return [{"name": f"t{place}", "description": "Nothing.", "parameters": empty} for place in range(count)]


def _build_function_with_properties(schemas: JsonObject) -> JsonObject:
    properties = {f"p{place}": schema for place, schema in enumerate(schemas.values())}
    return {**_build_function(ECHO_TOOL.name), "parameters": {"type": "object", "properties": properties}}
