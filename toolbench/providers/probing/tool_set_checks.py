"""Checks of the tools that are offered: which names, how many at once and which keywords of a schema an endpoint takes.
Only a refusal of the request counts, and only where one plain tool is taken."""

import re
from collections.abc import Sequence

from toolbench.engine.messages import JsonObject
from toolbench.providers.probing.check_result import ProbeCheck, untold
from toolbench.providers.probing.prober import ECHO, Prober, Reply

MANY = 129
LONG = 65  # characters
ROUNDS = 5
_DOTTED, _LONG_NAME = "probe.echo", "probe_".ljust(LONG, "e")
_PATTERN = re.compile(r"\^(?:\[[^\[\]\s]+\](?:\{\d{1,4}(?:,\d{0,4})?\}|[+*?])?){1,4}\$")
_REJECTIONS = ("request_rejected", "unprocessable")
_TEXT: JsonObject = {"type": "string"}
_KEYWORDS: dict[str, JsonObject] = {
    "anyOf": {"anyOf": [_TEXT, {"type": "integer"}]},
    "oneOf": {"oneOf": [_TEXT, {"type": "integer"}]},
    "allOf": {"allOf": [_TEXT]},
    "not": {"type": "string", "not": {"enum": ["a"]}},
    "const": {"const": "a"},
    "default": {"type": "string", "default": "a"},
    "pattern": {"type": "string", "pattern": "^a+$"},
    "format": {"type": "string", "format": "uuid"},
    "minLength": {"type": "string", "minLength": 1},
    "exclusiveMinimum": {"type": "integer", "exclusiveMinimum": 0},
    "multipleOf": {"type": "integer", "multipleOf": 2},
    "maxItems": {"type": "array", "items": _TEXT, "maxItems": 4},
    "uniqueItems": {"type": "array", "items": _TEXT, "uniqueItems": True},
    "prefixItems": {"type": "array", "prefixItems": [_TEXT]},
    "additionalProperties": {"type": "object", "properties": {}, "additionalProperties": False},
    "patternProperties": {"type": "object", "patternProperties": {"^a": _TEXT}},
}
_WORDS = ("not", "const", "default", "pattern", "format")  # name a keyword only in quotes or in a path


async def check_names(prober: Prober) -> ProbeCheck:
    """A name with a dot and one of 65 characters: what is refused tells what names must look like, unless the refusal
    says it."""
    replies = {name: await _offer(prober, _named(name)) for name in (_DOTTED, _LONG_NAME)}
    numbers = tuple(reply.number for reply in replies.values())
    refused = [name for name, reply in replies.items() if reply.error is not None]
    if not refused:
        said = f"A dot is taken in a tool's name, and {LONG} characters are."
        return ProbeCheck("names", "passed", said, exchanges=numbers)
    if trouble := await _trouble("names", prober, [replies[name] for name in refused]):
        return trouble
    pattern = _pattern_said([replies[name] for name in refused], refused)
    if not pattern and _LONG_NAME in refused:
        shorter = await _offer(prober, _named(_LONG_NAME[:-1]))
        numbers = (*numbers, shorter.number)
        if shorter.error is not None:
            said = f"A tool's name of {LONG} characters is refused; how many are taken could not be told."
            return ProbeCheck("names", "failed", said, exchanges=numbers)
    what = " and ".join({_DOTTED: "a dot", _LONG_NAME: f"{LONG} characters"}[name] for name in refused)
    characters = "[a-zA-Z0-9_-]" if _DOTTED in refused else "[a-zA-Z0-9_.-]"
    pattern = pattern or f"^{characters}{f'{{1,{LONG - 1}}}' if _LONG_NAME in refused else '+'}$"
    return ProbeCheck("names", "failed", f"Refused in a tool's name: {what}.", {"name_pattern": pattern}, numbers)


def _pattern_said(replies: Sequence[Reply], refused: Sequence[str]) -> str:
    """The pattern that a refusal names, where it refuses what was refused and no plain name; "" for none. Classes and
    counts only: an endpoint's own words must not be able to keep us busy."""
    for written in _PATTERN.findall(" ".join(map(_said, replies))):
        try:
            pattern = re.compile(written)
        except re.error:
            continue
        if pattern.search(ECHO.name) and not any(pattern.search(name) for name in refused):
            return str(written)
    return ""


async def check_max_tools(prober: Prober) -> ProbeCheck:
    """129 tools at once. Where that is too many, the number that the refusal names must be taken and one more must
    not; where it names none, 128 must be taken."""
    reply = await _offer(prober, *_many(MANY))
    numbers: tuple[int, ...] = (reply.number,)
    if reply.error is None:
        return ProbeCheck("max_tools", "passed", f"{MANY} tools in one request are taken.", exchanges=numbers)
    if trouble := await _trouble("max_tools", prober, [reply]):
        return trouble
    below = [int(number) for number in re.findall(r"\d+", _said(reply)) if 0 < int(number) < MANY]
    most = max(below, default=MANY - 1)
    taken = await _offer(prober, *_many(most))
    more = await _offer(prober, *_many(most + 1)) if taken.error is None and most + 1 < MANY else reply
    numbers = tuple(dict.fromkeys((*numbers, taken.number, more.number)))
    if taken.error is not None or not _rejected(more):
        said = f"{MANY} tools in one request are refused; how many are taken could not be told."
        return ProbeCheck("max_tools", "failed", said, exchanges=numbers)
    said = f"{most} tools in one request are taken, one more is refused."
    return ProbeCheck("max_tools", "failed", said, {"max_tools": most}, numbers)


async def check_keywords(prober: Prober) -> ProbeCheck:
    """A schema with many keywords; those that a refusal names are left out and it is sent again."""
    left, refused, numbers = dict(_KEYWORDS), list[str](), tuple[int, ...]()
    for _ in range(ROUNDS):
        reply = await _offer(prober, _with_properties(left))
        numbers = (*numbers, reply.number)
        if reply.error is None:
            break
        if not refused and (trouble := await _trouble("keywords", prober, [reply])):
            return trouble
        named = [keyword for keyword in left if _rejected(reply) and _names(_said(reply), keyword)]
        if not named or len(named) == len(left):
            break
        refused += named
        left = {keyword: schema for keyword, schema in left.items() if keyword not in named}
    if refused:
        said = f"Refused in a tool's schema: {', '.join(refused)}."
        return ProbeCheck("keywords", "failed", said, {"schema_dialect": refused}, numbers)
    if reply.error is not None:
        said = (
            f"A schema with {len(left)} keywords is refused, and the refusal names none of them: {reply.error.message}"
        )
        return ProbeCheck("keywords", "failed", said, exchanges=numbers)
    said = f"Taken in a tool's schema: {', '.join(left)}."
    return ProbeCheck("keywords", "passed", said, {"schema_dialect": []}, numbers)


def _names(said: str, keyword: str) -> bool:
    before = r"['\"`./\[$]" if keyword in _WORDS else r"(?<!\w)"
    return re.search(rf"{before}{keyword}(?!\w)", said) is not None


async def _trouble(slug: str, prober: Prober, replies: Sequence[Reply]) -> ProbeCheck | None:
    """Why these errors say nothing of what was asked: one is no refusal of the request, or a plain tool is not taken
    either. None where they do."""
    numbers = tuple(reply.number for reply in replies)
    for reply in replies:
        if not _rejected(reply):
            return untold(slug, reply.error, numbers)
    plain = await _offer(prober, _named(ECHO.name))
    return untold(slug, plain.error, (*numbers, plain.number)) if plain.error is not None else None


def _rejected(reply: Reply) -> bool:
    return reply.error is not None and reply.error.code in _REJECTIONS


def _said(reply: Reply) -> str:
    return f"{reply.error.message} {reply.error.hint}" if reply.error else ""


async def _offer(prober: Prober, *functions: JsonObject) -> Reply:
    tools = [{"type": "function", "function": function} for function in functions]
    asked = [{"role": "user", "content": "Say hello."}]
    return await prober.post({"messages": asked, "tools": tools, prober.limit_name: 16})


def _named(name: str) -> JsonObject:
    return {"name": name, "description": ECHO.description, "parameters": ECHO.parameters}


def _many(count: int) -> list[JsonObject]:
    empty: JsonObject = {"type": "object", "properties": {}}
    return [{"name": f"t{place}", "description": "Nothing.", "parameters": empty} for place in range(count)]


def _with_properties(schemas: JsonObject) -> JsonObject:
    properties = {f"p{place}": schema for place, schema in enumerate(schemas.values())}
    return {**_named(ECHO.name), "parameters": {"type": "object", "properties": properties}}
