"""Compiler from a normalised schema to GBNF, the grammar language of llama.cpp.

Keys stand in the order of the schema. Between two tokens of JSON stands at most as much white space as the limits
allow. Every repetition has an end.
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

MAX_OTHER_KEYS = 64  # further keys of an object that may have any
_HEX = "[0-9a-fA-F]"
_CHAR = (
    r'[^"\\\x00-\x1F\x7F] | "\\" ["\\/bfnrt]'
    rf' | "\\u" ([0-9a-cA-CeEfF] {_HEX}{{3,3}} | [dD] [0-7] {_HEX}{{2,2}})'
)
_DAY = (
    '[0-9]{4,4} "-" (("0" [13578] | "1" [02]) "-" ("0" [1-9] | [1-2] [0-9] | "3" [0-1])'
    ' | ("0" [469] | "11") "-" ("0" [1-9] | [1-2] [0-9] | "30") | "02-" ("0" [1-9] | "1" [0-9] | "2" [0-8]))'
)
_TIME = (
    '([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,6})?'
    ' ("Z" | [+\\x2D] ([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9])'
)
_BYTE = '([0-9] | [1-9] [0-9] | "1" [0-9]{2,2} | "2" [0-4] [0-9] | "25" [0-5])'
FORMAT_RULES = {
    "date": _DAY,
    "time": _TIME,
    "date-time": f'{_DAY} "T" {_TIME}',
    "uuid": f'{_HEX}{{8,8}} "-" {_HEX}{{4,4}} "-" {_HEX}{{4,4}} "-" {_HEX}{{4,4}} "-" {_HEX}{{12,12}}',
    "ipv4": f'{_BYTE} "." {_BYTE} "." {_BYTE} "." {_BYTE}',
}
NUMBER_RULE = '"-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,16})? ([eE] [+\\x2D]? [0-9]{1,2})?'
BOOLEAN_RULE = '"true" | "false"'


class GbnfGrammar:
    """The rules of one grammar; equal bodies share a rule."""

    def __init__(self, definitions: Mapping[str, Any], limits: SizeLimits) -> None:
        self._definitions = definitions
        self._limits = limits
        self._rules: dict[str, str] = {}
        self._named: dict[str, str] = {}  # body -> name
        self._values: dict[str, str] = {}  # schema -> symbol

    def text(self, root: str) -> str:
        """Return the grammar with `root` as its start."""
        rules = "\n".join(f"{name} ::= {body}" for name, body in self._rules.items())
        return f"root ::= {root}\n{rules}\n"

    def define(self, hint: str, body: str) -> str:
        """Return the name of a rule with this body."""
        if body not in self._named:
            name = self._named[body] = f"{hint}-{len(self._rules)}"
            self._rules[name] = body
        return self._named[body]

    def value(self, schema: JsonObject) -> str:
        """Return a symbol for the JSON text of the values that a schema allows."""
        key = write_json(schema)
        if key not in self._values:
            self._values[key] = self._recursive(schema["$ref"]) if "$ref" in schema else self._value(schema)
        return self._values[key]

    def object_of(self, pairs: list[tuple[str, str, bool]], additional: str = "") -> str:
        """Return a symbol for an object.

        Args:
            pairs: key, symbol of the value, and whether the key is required.
            additional: symbol of a further pair; "" for none.
        """
        written = [
            (self.define("pair", f"{render_json_literal(key)} {self._gap(':')} {value}"), must)
            for key, value, must in pairs
        ]
        members = self._members(written, additional)
        return self.define("object", f'"{{" {self.space()} {members} "}}"')

    def list_of(self, item: str, least: int, most: int) -> str:
        """Return a symbol for an array with this number of items."""
        if most == 0:
            return self.define("list", f'"[" {self.space()} "]"')
        more = self.define("more", f"{self._gap(',')} {item}")
        filled = f"{item} {render_repeat(more, max(0, least - 1), most - 1, self.define)}" if most > 1 else item
        return self._bracketed(filled, may_be_empty=not least)

    def space(self) -> str:
        """Return a symbol for white space."""
        most = self._limits.whitespace
        return self.define("space", f"[ \\t\\n]{{0,{most}}}") if most else '""'

    def _gap(self, token: str) -> str:
        return self.define("gap", f'{self.space()} "{token}" {self.space()}')

    def _recursive(self, reference: str) -> str:
        name = reference.rpartition("/")[2]
        rule = f"def-{name.replace('_', '-')}"
        if rule not in self._rules:
            self._rules[rule] = ""
            self._rules[rule] = self.value(self._definitions[name])
        return rule

    def _value(self, schema: JsonObject) -> str:
        if "anyOf" in schema:
            return self.define("choice", " | ".join(self.value(option) for option in schema["anyOf"]))
        if "enum" in schema:
            return self.define("value", " | ".join(render_json_literal(value) for value in schema["enum"]))
        makers = {"string": self._string, "array": self._array, "object": self._object, "integer": self._integer}
        kind = schema["type"]
        if kind in makers:
            return makers[kind](schema)
        plain = {"number": NUMBER_RULE, "boolean": BOOLEAN_RULE, "null": '"null"'}
        return self.define(kind, plain[kind])

    def _integer(self, schema: JsonObject) -> str:
        return self.define("integer", build_integer_grammar(schema.get("minimum"), schema.get("maximum")))

    def _string(self, schema: JsonObject) -> str:
        if "format" in schema:
            return self.define("string", f'"\\"" {FORMAT_RULES[schema["format"]]} "\\""')
        most = schema["maxLength"]
        if "pattern" in schema:
            branches = parse_pattern(schema["pattern"]) or ()
            inside = " | ".join(self._branch(branch, most) for branch in branches)
            return self.define("string", f'"\\"" ({inside}) "\\""')
        char = self.define("char", _CHAR)
        return self.define(
            "string", f'"\\"" {render_repeat(char, schema.get("minLength", 0), most, self.define)} "\\""'
        )

    def _branch(self, branch: Branch, most: int) -> str:
        anything = render_repeat(self.define("char", _CHAR), 0, most, self.define)
        parts = [self._node(branch.node, most)]
        parts = parts if branch.from_start else [anything, *parts]
        return " ".join(parts if branch.to_end else [*parts, anything])

    def _node(self, node: Node, most: int) -> str:
        if isinstance(node, CharacterClass):
            return render_json_class(node.ranges) or '""'
        if isinstance(node, Repetition):
            symbol = self.define("part", self._node(node.node, most))
            last = node.most if node.most is not None else max(most, node.least)
            return render_repeat(symbol, node.least, last, self.define)
        if isinstance(node, Sequence):
            return " ".join(self._node(part, most) for part in node.parts) or '""'
        return f"({' | '.join(self._node(option, most) for option in node.options)})"

    def _array(self, schema: JsonObject) -> str:
        least, most = schema.get("minItems", 0), schema["maxItems"]
        if "prefixItems" not in schema:
            return self.list_of(self.value(schema["items"]), least, most)
        return self._tuple(schema, least, most)

    def _tuple(self, schema: JsonObject, least: int, most: int) -> str:
        """Return a symbol for an array whose first items have their own schemas.

        It is built from the end, since each item may be the last.
        """
        first, rest = schema["prefixItems"][:most], schema["items"]
        tail = ""
        if rest is not False and most > len(first):
            more = self.define("more", f"{self._gap(',')} {self.value(rest)}")
            tail = render_repeat(more, max(0, least - len(first)), most - len(first), self.define)
        for place in reversed(range(1, len(first))):
            after = f"{self._gap(',')} {self.value(first[place])} {tail}"
            tail = after if least > place else f"({after})?"
        return self._bracketed(f"{self.value(first[0])} {tail}", may_be_empty=not least)

    def _bracketed(self, items: str, *, may_be_empty: bool) -> str:
        inside = f"({items} {self.space()})?" if may_be_empty else f"{items} {self.space()}"
        return self.define("list", f'"[" {self.space()} {inside} "]"')

    def _object(self, schema: JsonObject) -> str:
        properties, required = schema.get("properties", {}), schema.get("required", ())
        pairs = [(name, self.value(part), name in required) for name, part in properties.items()]
        additional = ""
        if schema["additionalProperties"] is not False:
            value = self.value(schema["additionalProperties"])
            name = render_other_name(properties, self.define) if properties else self._key()
            additional = self.define("pair", f'"\\"" {name} "\\"" {self._gap(":")} {value}')
        return self.object_of(pairs, additional)

    def _key(self) -> str:
        return self.define("key", f"{render_char_class(complement_ranges(((0, 31), (34, 34), (92, 92))))}{{0,64}}")

    def _members(self, pairs: list[tuple[str, bool]], additional: str) -> str:
        """Return the text between the braces. `rest[i]` is what may follow after the first pair."""
        comma = self._gap(",")
        rest = f"({comma} {additional}){{0,{MAX_OTHER_KEYS}}}" if additional else ""
        starts = [f"{additional} {rest}"] if additional else []
        optional = all(not must for _, must in pairs)
        for place, (name, must) in reversed(list(enumerate(pairs))):
            starts = [f"{name} {rest}".strip()] if must else [f"{name} {rest}".strip(), *starts]
            step = f"{comma} {name}" if must else f"({comma} {name})?"
            rest = self.define("rest", f"{step} {rest}".strip()) if place else ""
        if not starts:
            return ""
        first = f"({' | '.join(starts)})" if len(starts) > 1 else starts[0]
        return f"({first} {self.space()})?" if optional else f"{first} {self.space()}"
