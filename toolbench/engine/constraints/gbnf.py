"""Compiler from a normalised schema to GBNF, the grammar language of llama.cpp.

Objects have their keys in the order of the schema. The limits set the largest number of white space characters between
two tokens of JSON. Every repetition has a maximum.
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

MAX_OTHER_KEYS = 64  # keys without a schema of their own in an object that allows them
_HEX = "[0-9a-fA-F]"
_JSON_CHARACTER = (
    r'[^"\\\x00-\x1F\x7F] | "\\" ["\\/bfnrt]'
    rf' | "\\u" ([0-9a-cA-CeEfF] {_HEX}{{3,3}} | [dD] [0-7] {_HEX}{{2,2}})'
)
_DATE = (
    '[0-9]{4,4} "-" (("0" [13578] | "1" [02]) "-" ("0" [1-9] | [1-2] [0-9] | "3" [0-1])'
    ' | ("0" [469] | "11") "-" ("0" [1-9] | [1-2] [0-9] | "30") | "02-" ("0" [1-9] | "1" [0-9] | "2" [0-8]))'
)
_TIME = (
    '([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,6})?'
    ' ("Z" | [+\\x2D] ([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9])'
)
_BYTE = '([0-9] | [1-9] [0-9] | "1" [0-9]{2,2} | "2" [0-4] [0-9] | "25" [0-5])'
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
        self._named: dict[str, str] = {}  # body -> name
        self._values: dict[str, str] = {}  # schema -> symbol

    def render(self, root: str) -> str:
        """Return the text of the grammar with `root` as the body of its start rule."""
        rules = "\n".join(f"{name} ::= {body}" for name, body in self._rules.items())
        return f"root ::= {root}\n{rules}\n"

    def define(self, hint: str, body: str) -> str:
        """Return the name of the rule with this body; a new rule's name begins with `hint`."""
        if body not in self._named:
            name = self._named[body] = f"{hint}-{len(self._rules)}"
            self._rules[name] = body
        return self._named[body]

    def define_value(self, schema: JsonObject) -> str:
        """Return a symbol for the JSON text of the values that a schema allows."""
        key = write_json(schema)
        if key not in self._values:
            self._values[key] = (
                self._define_reference(schema["$ref"]) if "$ref" in schema else self._define_plain_value(schema)
            )
        return self._values[key]

    def define_object(self, pairs: list[tuple[str, str, bool]], additional: str = "") -> str:
        """Return a symbol for an object.

        Args:
            pairs: key, symbol of the value, and whether the key is required, in the order of the object.
            additional: symbol of a key and value that may follow, up to MAX_OTHER_KEYS times; "" for none.
        """
        pair_symbols = [
            (self.define("pair", f"{render_json_literal(key)} {self._define_gap(':')} {value}"), must)
            for key, value, must in pairs
        ]
        members = self._build_members(pair_symbols, additional)
        return self.define("object", f'"{{" {self.define_space()} {members} "}}"')

    def define_list(self, item: str, least: int, most: int) -> str:
        """Return a symbol for an array of `least` to `most` times the symbol `item`."""
        if most == 0:
            return self.define("list", f'"[" {self.define_space()} "]"')
        further_item = self.define("more", f"{self._define_gap(',')} {item}")
        items = f"{item} {render_repeat(further_item, max(0, least - 1), most - 1, self.define)}" if most > 1 else item
        return self._define_bracketed(items, may_be_empty=not least)

    def define_space(self) -> str:
        """Return a symbol for optional white space, up to the limit."""
        most = self._limits.whitespace
        return self.define("space", f"[ \\t\\n]{{0,{most}}}") if most else '""'

    def _define_gap(self, token: str) -> str:
        return self.define("gap", f'{self.define_space()} "{token}" {self.define_space()}')

    def _define_reference(self, reference: str) -> str:
        name = reference.rpartition("/")[2]
        rule = f"def-{name.replace('_', '-')}"
        if rule not in self._rules:
            self._rules[rule] = ""
            self._rules[rule] = self.define_value(self._definitions[name])
        return rule

    def _define_plain_value(self, schema: JsonObject) -> str:
        """Return a symbol for a schema that is not a reference; `define_value` caches it."""
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
        most = schema["maxLength"]
        if "pattern" in schema:
            branches = parse_pattern(schema["pattern"]) or ()
            inside = " | ".join(self._build_branch(branch, most) for branch in branches)
            return self.define("string", f'"\\"" ({inside}) "\\""')
        char = self.define("char", _JSON_CHARACTER)
        return self.define(
            "string", f'"\\"" {render_repeat(char, schema.get("minLength", 0), most, self.define)} "\\""'
        )

    def _build_branch(self, branch: Branch, most: int) -> str:
        any_text = render_repeat(self.define("char", _JSON_CHARACTER), 0, most, self.define)
        parts = [self._build_node(branch.node, most)]
        parts = parts if branch.from_start else [any_text, *parts]
        return " ".join(parts if branch.to_end else [*parts, any_text])

    def _build_node(self, node: Node, most: int) -> str:
        if isinstance(node, CharacterClass):
            return render_json_class(node.ranges) or '""'
        if isinstance(node, Repetition):
            symbol = self.define("part", self._build_node(node.node, most))
            most_times = node.most if node.most is not None else max(most, node.least)
            return render_repeat(symbol, node.least, most_times, self.define)
        if isinstance(node, Sequence):
            return " ".join(self._build_node(part, most) for part in node.parts) or '""'
        return f"({' | '.join(self._build_node(option, most) for option in node.options)})"

    def _define_array(self, schema: JsonObject) -> str:
        least, most = schema.get("minItems", 0), schema["maxItems"]
        if "prefixItems" not in schema:
            return self.define_list(self.define_value(schema["items"]), least, most)
        return self._define_tuple(schema, least, most)

    def _define_tuple(self, schema: JsonObject, least: int, most: int) -> str:
        """Return a symbol for an array whose first items have their own schemas.

        The body is built from the last item to the first, since the array may end after each item.
        """
        first_schemas, items_schema = schema["prefixItems"][:most], schema["items"]
        following_items = ""
        if items_schema is not False and most > len(first_schemas):
            further_item = self.define("more", f"{self._define_gap(',')} {self.define_value(items_schema)}")
            following_items = render_repeat(
                further_item, max(0, least - len(first_schemas)), most - len(first_schemas), self.define
            )
        for index in reversed(range(1, len(first_schemas))):
            item = f"{self._define_gap(',')} {self.define_value(first_schemas[index])} {following_items}"
            following_items = item if least > index else f"({item})?"
        return self._define_bracketed(
            f"{self.define_value(first_schemas[0])} {following_items}", may_be_empty=not least
        )

    def _define_bracketed(self, items: str, *, may_be_empty: bool) -> str:
        inside = f"({items} {self.define_space()})?" if may_be_empty else f"{items} {self.define_space()}"
        return self.define("list", f'"[" {self.define_space()} {inside} "]"')

    def _define_keyed_object(self, schema: JsonObject) -> str:
        properties, required = schema.get("properties", {}), schema.get("required", ())
        pairs = [(name, self.define_value(part), name in required) for name, part in properties.items()]
        additional = ""
        if schema["additionalProperties"] is not False:
            value = self.define_value(schema["additionalProperties"])
            name = render_other_name(properties, self.define) if properties else self._define_key()
            additional = self.define("pair", f'"\\"" {name} "\\"" {self._define_gap(":")} {value}')
        return self.define_object(pairs, additional)

    def _define_key(self) -> str:
        return self.define("key", f"{render_char_class(complement_ranges(((0, 31), (34, 34), (92, 92))))}{{0,64}}")

    def _build_members(self, pairs: list[tuple[str, bool]], additional: str) -> str:
        """Return the body between the braces.

        The body is built from the last pair to the first: `rest` is the part that may follow the current pair, and
        `starts` are the alternatives with which the object may begin.
        """
        comma = self._define_gap(",")
        rest = f"({comma} {additional}){{0,{MAX_OTHER_KEYS}}}" if additional else ""
        starts = [f"{additional} {rest}"] if additional else []
        is_empty_allowed = all(not is_required for _, is_required in pairs)
        for index, (name, is_required) in reversed(list(enumerate(pairs))):
            starts = [f"{name} {rest}".strip()] if is_required else [f"{name} {rest}".strip(), *starts]
            next_pair = f"{comma} {name}" if is_required else f"({comma} {name})?"
            rest = self.define("rest", f"{next_pair} {rest}".strip()) if index else ""
        if not starts:
            return ""
        first = f"({' | '.join(starts)})" if len(starts) > 1 else starts[0]
        return f"({first} {self.define_space()})?" if is_empty_allowed else f"{first} {self.define_space()}"
