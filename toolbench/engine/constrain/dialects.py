"""What each way of holding a model to a form really keeps of a JSON Schema. A keyword that is sent and passed over
promises something that nobody holds, so it is left out and named."""

from dataclasses import dataclass
from types import NoneType

NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
LENGTHS = frozenset({"minLength", "maxLength"})
COUNTS = frozenset({"minItems", "maxItems"})
PLAIN_FORMATS = frozenset({"date", "time", "date-time", "uuid"})
MANY_FORMATS = PLAIN_FORMATS | {"duration", "email", "hostname", "ipv4", "ipv6"}


@dataclass(frozen=True, slots=True)
class Limits:
    """Where strings and lists end that have no end of their own, and how many white spaces a grammar of ours allows
    between two tokens."""

    max_string: int = 4096  # characters
    max_items: int = 256
    whitespace: int = 1


@dataclass(frozen=True, slots=True)
class Dialect:
    """`keeps` are the keywords held beside the plain structure: type, enum, const, properties, required, items, anyOf,
    additionalProperties and recursion by `$ref`, which all hold.

    `patterns` is any (with no look-around nor back reference), anchored (the same as `^…$` only), plain (our own
    grammar says it, and ends it where it has no end), unescaped (any but one with a negated class that excludes a
    quotation mark or a backslash, which llguidance 1.9 takes all the same, escaped), or none. `longest` is the
    greatest string bound that is held. `fractions`: bounds of numbers that need not be whole are held. `together`:
    a length beside a pattern is held. `closed`: every object is closed. `strict`: every key of it is required too,
    an optional one as null. `recursion`: a reference may lead back to itself. `least_items` is the greatest
    minItems that is held, `enum_types` are the types that values of an enum may have."""

    name: str
    keeps: frozenset[str]
    formats: frozenset[str]
    patterns: str
    longest: int | None = None
    fractions: bool = True
    together: bool = False
    closed: bool = False
    strict: bool = False
    recursion: bool = True
    least_items: int | None = None
    enum_types: frozenset[type] = frozenset({str, int, float, bool, NoneType, list, dict})


# llama.cpp takes string bounds of 2000 and more for none or refuses them, and bounds of fractions for none.
SCHEMA = Dialect(
    "response_format", NUMBERS | LENGTHS | COUNTS, PLAIN_FORMATS, "anchored", longest=1900, fractions=False
)
STRICT = Dialect("strict", NUMBERS | COUNTS | {"multipleOf"}, MANY_FORMATS, "any", closed=True, strict=True)
# Anthropic refuses what it does not hold; its own SDK leaves out the same.
MESSAGES = Dialect(
    "output_config",
    frozenset({"minItems"}),
    MANY_FORMATS | {"uri"},
    "none",
    closed=True,
    recursion=False,
    least_items=1,
    enum_types=frozenset({str, int, float, bool, NoneType}),
)
# What Google's reference of Gemini's responseJsonSchema lists; anything else is passed over.
PLAIN = Dialect(
    "plain_schema",
    frozenset({"minimum", "maximum", "prefixItems"}) | COUNTS,
    frozenset({"date", "time", "date-time"}),
    "none",
    recursion=False,
    enum_types=frozenset({str, int, float}),
)
# Outlines, which TGI builds upon, writes a schema as one regular expression.
TGI = Dialect("tgi_grammar", LENGTHS | COUNTS, PLAIN_FORMATS, "anchored", recursion=False)
VLLM = Dialect("structured_outputs", NUMBERS | LENGTHS | COUNTS, PLAIN_FORMATS, "anchored")
LLGUIDANCE = Dialect(
    "grammar",
    NUMBERS | LENGTHS | COUNTS | {"multipleOf", "prefixItems", "patternProperties", "minProperties", "maxProperties"},
    MANY_FORMATS,
    "unescaped",
    together=True,
)
GBNF = Dialect("gbnf", NUMBERS | LENGTHS | COUNTS | {"prefixItems"}, PLAIN_FORMATS | {"ipv4"}, "plain", fractions=False)

DIALECTS = {
    "response_format": SCHEMA,
    "plain_schema": PLAIN,
    "strict": STRICT,
    "strict_tools": STRICT,
    "structured_outputs": VLLM,
    "tgi_grammar": TGI,
    "output_config": MESSAGES,
    "strict_tool_use": MESSAGES,
    "grammar": LLGUIDANCE,
    "gbnf": GBNF,
    "fireworks_grammar": GBNF,
    "structured_grammar": GBNF,
    "ebnf": GBNF,
}
CONSTRAINTS = tuple(DIALECTS)
OF_TOOLS = ("strict_tools", "strict_tool_use")  # these hold native tools, the others an answer in text
