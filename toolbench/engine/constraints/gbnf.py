"""Compiler from a normalised schema to GBNF, the grammar language of llama.cpp.

Objects have their keys in the order of the schema. `SizeLimits.max_whitespace` limits the white space between two JSON
tokens. Every repetition has a maximum.
"""

from collections.abc import Mapping
from typing import Any

from toolbench.engine.constraints.gbnf_text import (
    render_char_class,
    render_json_class,
    render_json_literal,
    render_other_name,
    render_repeat,
)
from toolbench.engine.constraints.integer_grammar import build_integer_grammar
from toolbench.engine.constraints.regex import (
    Branch,
    CharacterClass,
    Node,
    Repetition,
    Sequence,
    complement_ranges,
    parse_pattern,
)
from toolbench.engine.constraints.schema_support import SizeLimits
from toolbench.engine.strict_json import write_json
from toolbench.engine.types import JsonObject

MAX_OTHER_KEYS = 64  # maximum number of keys outside of `properties`, after the first key of an object
_HEX = "[0-9a-fA-F]"
# One character of a JSON string, or an escape of it. Escapes of surrogates are not allowed.
_JSON_CHARACTER = (
    r'[^"\\\x00-\x1F\x7F] | "\\" ["\\/bfnrt]'
    rf' | "\\u" ([0-9a-cA-CeEfF] {_HEX}{{3,3}} | [dD] [0-7] {_HEX}{{2,2}})'
)
# 29 February is not allowed, since rules for leap years would make the grammar long.
_DATE = (
    '[0-9]{4,4} "-" (("0" [13578] | "1" [02]) "-" ("0" [1-9] | [1-2] [0-9] | "3" [0-1])'
    ' | ("0" [469] | "11") "-" ("0" [1-9] | [1-2] [0-9] | "30") | "02-" ("0" [1-9] | "1" [0-9] | "2" [0-8]))'
)
_TIME = (
    '([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,6})?'
    ' ("Z" | [+\\x2D] ([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9])'
)
_BYTE = '([0-9] | [1-9] [0-9] | "1" [0-9]{2,2} | "2" [0-4] [0-9] | "25" [0-5])'
# GBNF for the text of strings with a `format`, without the quotes.
FORMAT_RULES = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f'{_DATE} "T" {_TIME}',
    "uuid": f'{_HEX}{{8,8}} "-" {_HEX}{{4,4}} "-" {_HEX}{{4,4}} "-" {_HEX}{{4,4}} "-" {_HEX}{{12,12}}',
    "ipv4": f'{_BYTE} "." {_BYTE} "." {_BYTE} "." {_BYTE}',
}
NUMBER_RULE = '"-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,16})? ([eE] [+\\x2D]? [0-9]{1,2})?'
BOOLEAN_RULE = '"true" | "false"'


class GbnfGrammar:
    """The rules of one grammar; equal rule bodies share a rule.

    A symbol is the text that stands for a rule or an expression in the body of another rule.
    """

    def __init__(self, definitions: Mapping[str, Any], limits: SizeLimits) -> None:
        self._definitions = definitions
        self._limits = limits
        self._rules: dict[str, str] = {}
        self._rule_name_by_body: dict[str, str] = {}
        self._symbol_by_schema: dict[str, str] = {}  # by the JSON text of the schema

    def render(self, root: str) -> str:
        """Return the text of the grammar with `root` as the body of its start rule."""
        rules = "\n".join(f"{name} ::= {body}" for name, body in self._rules.items())
        return f"root ::= {root}\n{rules}\n"

    def define(self, hint: str, body: str) -> str:
        """Return the name of the rule with this body; a new rule's name begins with `hint`."""
        if body not in self._rule_name_by_body:
            name = self._rule_name_by_body[body] = f"{hint}-{len(self._rules)}"
            self._rules[name] = body
        return self._rule_name_by_body[body]

    def define_value(self, schema: JsonObject) -> str:
        """Return a symbol for the JSON text of the values that a schema allows."""
        key = write_json(schema)
        if key not in self._symbol_by_schema:
            self._symbol_by_schema[key] = (
                self._define_reference(schema["$ref"]) if "$ref" in schema else self._define_plain_value(schema)
            )
        return self._symbol_by_schema[key]

    def define_object(self, pairs: list[tuple[str, str, bool]], additional: str = "") -> str:
        """Return a symbol for an object.

        Args:
            pairs: key, symbol of the value, and whether the key is required, in the order of the object.
            additional: symbol of a further key and value, which may follow up to MAX_OTHER_KEYS times; "" for none. If
                no pair is required, it may also begin the object.
        """
        member_symbols = [
            (self.define("pair", f"{render_json_literal(key)} {self._define_gap(':')} {value}"), is_required)
            for key, value, is_required in pairs
        ]
        members_body = self._build_members(member_symbols, additional)
        return self.define("object", f'"{{" {self.define_space()} {members_body} "}}"')

    def define_list(self, item: str, min_count: int, max_count: int) -> str:
        """Return a symbol for an array of `min_count` to `max_count` items; `item` is the symbol of an item."""
        if max_count == 0:
            return self.define("list", f'"[" {self.define_space()} "]"')
        further_item = self.define("more", f"{self._define_gap(',')} {item}")
        items = (
            f"{item} {render_repeat(further_item, max(0, min_count - 1), max_count - 1, self.define)}"
            if max_count > 1
            else item
        )
        return self._define_bracketed(items, may_be_empty=not min_count)

    def define_space(self) -> str:
        """Return a symbol for optional white space of up to `limits.max_whitespace` characters."""
        max_whitespace = self._limits.max_whitespace
        return self.define("space", f"[ \\t\\n]{{0,{max_whitespace}}}") if max_whitespace else '""'

    def _define_gap(self, token: str) -> str:
        """Return a symbol for a token, such as a comma, with optional white space around it."""
        return self.define("gap", f'{self.define_space()} "{token}" {self.define_space()}')

    def _define_reference(self, reference: str) -> str:
        """Return a symbol for the definition to which a `$ref` refers."""
        name = reference.rpartition("/")[2]
        rule = f"def-{name.replace('_', '-')}"
        if rule not in self._rules:
            self._rules[rule] = ""  # so that a recursive schema finds its own rule
            self._rules[rule] = self.define_value(self._definitions[name])
        return rule

    def _define_plain_value(self, schema: JsonObject) -> str:
        """Return a symbol for the values of a schema that is not a reference; `define_value` caches it."""
        if "anyOf" in schema:
            return self.define("choice", " | ".join(self.define_value(option) for option in schema["anyOf"]))
        if "enum" in schema:
            return self.define("value", " | ".join(render_json_literal(value) for value in schema["enum"]))
        definers = {
            "string": self._define_string,
            "array": self._define_array,
            "object": self._define_keyed_object,
            "integer": self._define_integer,
        }
        json_type = schema["type"]
        if json_type in definers:
            return definers[json_type](schema)
        scalar_rules = {"number": NUMBER_RULE, "boolean": BOOLEAN_RULE, "null": '"null"'}
        return self.define(json_type, scalar_rules[json_type])

    def _define_integer(self, schema: JsonObject) -> str:
        return self.define("integer", build_integer_grammar(schema.get("minimum"), schema.get("maximum")))

    def _define_string(self, schema: JsonObject) -> str:
        if "format" in schema:
            return self.define("string", f'"\\"" {FORMAT_RULES[schema["format"]]} "\\""')
        max_length = schema["maxLength"]
        if "pattern" in schema:
            branches = parse_pattern(schema["pattern"]) or ()
            content = " | ".join(self._build_branch(branch, max_length) for branch in branches)
            return self.define("string", f'"\\"" ({content}) "\\""')
        char = self.define("char", _JSON_CHARACTER)
        return self.define(
            "string", f'"\\"" {render_repeat(char, schema.get("minLength", 0), max_length, self.define)} "\\""'
        )

    def _build_branch(self, branch: Branch, max_length: int) -> str:
        any_text = render_repeat(self.define("char", _JSON_CHARACTER), 0, max_length, self.define)
        parts = [self._build_node(branch.node, max_length)]
        parts = parts if branch.is_anchored_at_start else [any_text, *parts]
        return " ".join(parts if branch.is_anchored_at_end else [*parts, any_text])

    def _build_node(self, node: Node, max_length: int) -> str:
        if isinstance(node, CharacterClass):
            return render_json_class(node.ranges)
        if isinstance(node, Repetition):
            symbol = self.define("part", self._build_node(node.node, max_length))
            max_count = node.max_count if node.max_count is not None else max(max_length, node.min_count)
            return render_repeat(symbol, node.min_count, max_count, self.define)
        if isinstance(node, Sequence):
            return " ".join(self._build_node(part, max_length) for part in node.parts) or '""'
        return f"({' | '.join(self._build_node(option, max_length) for option in node.options)})"

    def _define_array(self, schema: JsonObject) -> str:
        min_items, max_items = schema.get("minItems", 0), schema["maxItems"]
        if "prefixItems" not in schema:
            return self.define_list(self.define_value(schema["items"]), min_items, max_items)
        return self._define_tuple(schema, min_items, max_items)

    def _define_tuple(self, schema: JsonObject, min_items: int, max_items: int) -> str:
        """Return a symbol for an array whose first items have their own schemas.

        The body is built from the last item to the first, since the array may end after each item.
        """
        first_schemas, items_schema = schema["prefixItems"][:max_items], schema["items"]
        if not first_schemas:
            return self.define_list("", 0, 0)
        following_items = ""
        if items_schema is not False and max_items > len(first_schemas):
            further_item = self.define("more", f"{self._define_gap(',')} {self.define_value(items_schema)}")
            following_items = render_repeat(
                further_item, max(0, min_items - len(first_schemas)), max_items - len(first_schemas), self.define
            )
        for index in reversed(range(1, len(first_schemas))):
            item = f"{self._define_gap(',')} {self.define_value(first_schemas[index])} {following_items}"
            following_items = item if min_items > index else f"({item})?"
        return self._define_bracketed(
            f"{self.define_value(first_schemas[0])} {following_items}", may_be_empty=not min_items
        )

    def _define_bracketed(self, items: str, *, may_be_empty: bool) -> str:
        content = f"({items} {self.define_space()})?" if may_be_empty else f"{items} {self.define_space()}"
        return self.define("list", f'"[" {self.define_space()} {content} "]"')

    def _define_keyed_object(self, schema: JsonObject) -> str:
        properties, required = schema.get("properties", {}), schema.get("required", ())
        members = [(name, self.define_value(part), name in required) for name, part in properties.items()]
        additional = ""
        if schema["additionalProperties"] is not False:
            value = self.define_value(schema["additionalProperties"])
            name = render_other_name(properties, self.define) if properties else self._define_key()
            additional = self.define("pair", f'"\\"" {name} "\\"" {self._define_gap(":")} {value}')
        return self.define_object(members, additional)

    def _define_key(self) -> str:
        return self.define("key", f"{render_char_class(complement_ranges(((0, 31), (34, 34), (92, 92))))}{{0,64}}")

    def _build_members(self, pairs: list[tuple[str, bool]], additional: str) -> str:
        """Return the body between the braces of an object.

        The body is built from the last pair to the first: `remaining_members` is the part that may follow the current
        pair, and `first_alternatives` are the alternatives with which the object may begin.

        Args:
            pairs: symbol of key and value, and whether the key is required, in the order of the object.
            additional: symbol of a further key and value, as in `define_object`; "" for none.
        """
        comma = self._define_gap(",")
        remaining_members = f"({comma} {additional}){{0,{MAX_OTHER_KEYS}}}" if additional else ""
        first_alternatives = [f"{additional} {remaining_members}"] if additional else []
        is_empty_allowed = all(not is_required for _, is_required in pairs)
        for index, (pair, is_required) in reversed(list(enumerate(pairs))):
            alternative = f"{pair} {remaining_members}".strip()
            first_alternatives = [alternative] if is_required else [alternative, *first_alternatives]
            next_pair = f"{comma} {pair}" if is_required else f"({comma} {pair})?"
            remaining_members = self.define("rest", f"{next_pair} {remaining_members}".strip()) if index else ""
        if not first_alternatives:
            return ""
        first_member = f"({' | '.join(first_alternatives)})" if len(first_alternatives) > 1 else first_alternatives[0]
        members = f"{first_member} {self.define_space()}"
        return f"({members})?" if is_empty_allowed else members
