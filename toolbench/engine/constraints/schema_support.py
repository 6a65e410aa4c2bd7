"""JSON Schema support of each constraint.

A keyword that is not enforced is left out of requests and recorded, because sending it would promise an effect that it
does not have.
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
    """Limits of strings and lists whose schema has none, and of white space between two JSON tokens.

    Attributes:
        max_string_length: maximum number of characters of a string.
        max_items: maximum number of items of a list. For the constraint `grammar` it is also the maximum number of keys
            of an object, if all its `properties` are required and other keys are allowed.
        max_whitespace: maximum number of white space characters between two JSON tokens, in GBNF.
    """

    max_string_length: int = 4096
    max_items: int = 256
    max_whitespace: int = 1


@dataclass(frozen=True, slots=True)
class SchemaSupport:
    """The keywords of JSON Schema that a constraint enforces.

    Attributes:
        name: the name in records of dropped keywords.
        keywords: keywords that are enforced besides type, enum, const, properties, required, items, anyOf and
            additionalProperties. All constraints enforce these, within the limits below.
        formats: values of `format` that are enforced.
        pattern_support: which of the patterns that `parse_pattern` can parse are enforced.
            "any": all.
            "plain": all but those with a character class that consists of control characters without a short JSON
                escape. Repetitions without a maximum get one, and so does the text at an end without an anchor.
            "anchored": only `^…$`.
            "unescaped": all but those with a negated class that excludes a quotation mark or a backslash, because
                llguidance 1.9 accepts their JSON escapes although the class excludes the characters.
            "none": none.
        max_length: the largest value of `minLength` and `maxLength` that is enforced; None for no limit.
        bound_limit: bounds of numbers are enforced only if their absolute value is below this; None for no limit.
        enforces_number_bounds: whether the bounds in `keywords` are enforced for `number`. For `integer` they always
            are.
        combines_length_and_pattern: whether a length is enforced together with a pattern.
        closes_objects: whether the constraint allows only the keys in `properties` in every object.
        requires_all_keys: whether the constraint requires all keys of an object; an optional one may then be null.
        allows_recursion: whether references may be recursive.
        max_min_items: the largest enforced `minItems`; None for no limit.
        enum_types: Python types that the values of `enum` and `const` may have.
    """

    name: str
    keywords: frozenset[str]
    formats: frozenset[str]
    pattern_support: str
    max_length: int | None = None
    bound_limit: int | None = None
    enforces_number_bounds: bool = True
    combines_length_and_pattern: bool = False
    closes_objects: bool = False
    requires_all_keys: bool = False
    allows_recursion: bool = True
    max_min_items: int | None = None
    enum_types: frozenset[type] = frozenset({str, int, float, bool, NoneType, list, dict})


# llama.cpp ignores or refuses string bounds of 2000 and more, and ignores bounds of `number`.
RESPONSE_FORMAT_SUPPORT = SchemaSupport(
    "response_format",
    NUMBER_KEYWORDS | LENGTH_KEYWORDS | COUNT_KEYWORDS,
    PLAIN_FORMATS,
    "anchored",
    max_length=1900,
    enforces_number_bounds=False,
)
STRICT_SUPPORT = SchemaSupport(
    "strict",
    NUMBER_KEYWORDS | COUNT_KEYWORDS | {"multipleOf"},
    MANY_FORMATS,
    "any",
    closes_objects=True,
    requires_all_keys=True,
)
# Anthropic refuses keywords that it does not enforce; its own SDK leaves out the same ones.
OUTPUT_CONFIG_SUPPORT = SchemaSupport(
    "output_config",
    frozenset({"minItems"}),
    MANY_FORMATS | {"uri"},
    "none",
    closes_objects=True,
    allows_recursion=False,
    max_min_items=1,
    enum_types=frozenset({str, int, float, bool, NoneType}),
)
# The keywords in Google's reference of Gemini's responseJsonSchema; Gemini ignores any others.
PLAIN_SCHEMA_SUPPORT = SchemaSupport(
    "plain_schema",
    frozenset({"minimum", "maximum", "prefixItems"}) | COUNT_KEYWORDS,
    frozenset({"date", "time", "date-time"}),
    "none",
    allows_recursion=False,
    enum_types=frozenset({str, int, float}),
)
# Outlines, the library behind TGI's grammars, converts a schema to one regular expression.
TGI_SUPPORT = SchemaSupport(
    "tgi_grammar", LENGTH_KEYWORDS | COUNT_KEYWORDS, PLAIN_FORMATS, "anchored", allows_recursion=False
)
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
    max_length=2**32 - 1,  # llguidance refuses larger counts and bounds
    bound_limit=2**63,
    combines_length_and_pattern=True,
)
GBNF_SUPPORT = SchemaSupport(
    "gbnf",
    NUMBER_KEYWORDS | LENGTH_KEYWORDS | COUNT_KEYWORDS | {"prefixItems"},
    PLAIN_FORMATS | {"ipv4"},
    "plain",
    max_length=10**6,  # the size of a grammar grows with the length
    enforces_number_bounds=False,
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
TOOL_CONSTRAINTS = ("strict_tools", "strict_tool_use")  # these restrict native tool calls, the others an answer in text
