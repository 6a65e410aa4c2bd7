"""What each constraint enforces of a JSON Schema.

A keyword that is sent and ignored would promise something that is not enforced, so it is left out and named.
"""

from dataclasses import dataclass
from types import NoneType

NUMBER_KEYWORDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
LENGTH_KEYWORDS = frozenset({"minLength", "maxLength"})
COUNT_KEYWORDS = frozenset({"minItems", "maxItems"})
PLAIN_FORMATS = frozenset({"date", "time", "date-time", "uuid"})
MANY_FORMATS = PLAIN_FORMATS | {"duration", "email", "hostname", "ipv4", "ipv6"}


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """Limits of strings and lists without their own, and of white space between two tokens of a grammar."""

    max_string: int = 4096  # characters
    max_items: int = 256
    whitespace: int = 1


@dataclass(frozen=True, slots=True)
class SchemaSupport:
    """What a constraint enforces.

    Attributes:
        keeps: keywords that are enforced besides type, enum, const, properties, required, items, anyOf,
            additionalProperties and recursion by `$ref`, which all constraints enforce.
        patterns: "any" (no look-around or back reference), "anchored" (only `^…$`), "plain" (what our grammar can
            express; it limits open ends), "unescaped" (any but those with a negated class that excludes a quotation
            mark or a backslash, which llguidance 1.9 then accepts escaped), or "none".
        longest: the largest enforced bound of strings.
        fractions: whether bounds of numbers that need not be whole are enforced.
        together: whether a length beside a pattern is enforced.
        closed: whether all objects are closed.
        strict: whether all keys of an object are also required, optional ones as null.
        recursion: whether references may be recursive.
        least_items: the largest enforced minItems.
        enum_types: types that values of an enum may have.
    """

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
RESPONSE_FORMAT_SUPPORT = SchemaSupport(
    "response_format",
    NUMBER_KEYWORDS | LENGTH_KEYWORDS | COUNT_KEYWORDS,
    PLAIN_FORMATS,
    "anchored",
    longest=1900,
    fractions=False,
)
STRICT_SUPPORT = SchemaSupport(
    "strict", NUMBER_KEYWORDS | COUNT_KEYWORDS | {"multipleOf"}, MANY_FORMATS, "any", closed=True, strict=True
)
# Anthropic refuses what it does not hold; its own SDK leaves out the same.
OUTPUT_CONFIG_SUPPORT = SchemaSupport(
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
PLAIN_SCHEMA_SUPPORT = SchemaSupport(
    "plain_schema",
    frozenset({"minimum", "maximum", "prefixItems"}) | COUNT_KEYWORDS,
    frozenset({"date", "time", "date-time"}),
    "none",
    recursion=False,
    enum_types=frozenset({str, int, float}),
)
# Outlines, which TGI builds upon, writes a schema as one regular expression.
TGI_SUPPORT = SchemaSupport("tgi_grammar", LENGTH_KEYWORDS | COUNT_KEYWORDS, PLAIN_FORMATS, "anchored", recursion=False)
VLLM_SUPPORT = SchemaSupport(
    "structured_outputs", NUMBER_KEYWORDS | LENGTH_KEYWORDS | COUNT_KEYWORDS, PLAIN_FORMATS, "anchored"
)
LLGUIDANCE_SUPPORT = SchemaSupport(
    "grammar",
    NUMBER_KEYWORDS
    | LENGTH_KEYWORDS
    | COUNT_KEYWORDS
    | {"multipleOf", "prefixItems", "patternProperties", "minProperties", "maxProperties"},
    MANY_FORMATS,
    "unescaped",
    together=True,
)
GBNF_SUPPORT = SchemaSupport(
    "gbnf",
    NUMBER_KEYWORDS | LENGTH_KEYWORDS | COUNT_KEYWORDS | {"prefixItems"},
    PLAIN_FORMATS | {"ipv4"},
    "plain",
    fractions=False,
)

SCHEMA_SUPPORT = {
    "response_format": RESPONSE_FORMAT_SUPPORT,
    "plain_schema": PLAIN_SCHEMA_SUPPORT,
    "strict": STRICT_SUPPORT,
    "strict_tools": STRICT_SUPPORT,
    "structured_outputs": VLLM_SUPPORT,
    "tgi_grammar": TGI_SUPPORT,
    "output_config": OUTPUT_CONFIG_SUPPORT,
    "strict_tool_use": OUTPUT_CONFIG_SUPPORT,
    "grammar": LLGUIDANCE_SUPPORT,
    "gbnf": GBNF_SUPPORT,
    "fireworks_grammar": GBNF_SUPPORT,
    "structured_grammar": GBNF_SUPPORT,
    "ebnf": GBNF_SUPPORT,
}
CONSTRAINTS = tuple(SCHEMA_SUPPORT)
TOOL_CONSTRAINTS = ("strict_tools", "strict_tool_use")  # these hold native tools, the others an answer in text
