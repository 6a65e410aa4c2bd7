"""A tool's JSON Schema in the form that a constraint enforces.

References are written out, strings and lists get an end, objects are closed, and everything that the constraint would
ignore is left out and named. The result is plain: `type` is one word, alternatives are `anyOf`, a `const` is an `enum`
of one value, and a `$ref` leads to `#/$defs/NAME`. A place where any value is allowed has three levels of lists and
objects. An object that names its keys and says nothing of others has no others.
"""

from collections.abc import Mapping
from typing import Any

from toolbench.engine.constraints.dropped_keywords import DroppedKeyword, render_value_start
from toolbench.engine.constraints.references import SchemaReferences
from toolbench.engine.constraints.scalars import normalise_number, normalise_string
from toolbench.engine.constraints.schema_merge import ANNOTATIONS, merge_schemas
from toolbench.engine.constraints.schema_support import SchemaSupport, SizeLimits
from toolbench.engine.errors import PlanError
from toolbench.engine.types import JsonObject

MAX_PARTS = 10_000
MAX_DEPTH = 40
MAX_ANY_LEVELS = 4
MAX_UNROLLED_LEVELS = 3  # levels of a recursive schema, where a dialect has no recursion
UNSUPPORTED_KEYWORDS = ("not", "if", "then", "else", "dependentSchemas", "dependencies", "$dynamicRef")
IMPLIED_TYPES = {
    "properties": "object",
    "additionalProperties": "object",
    "patternProperties": "object",
    "items": "array",
    "prefixItems": "array",
    "minItems": "array",
    "maxItems": "array",
    "pattern": "string",
    "format": "string",
    "minLength": "string",
    "maxLength": "string",
    "minimum": "number",
    "maximum": "number",
    "exclusiveMinimum": "number",
    "exclusiveMaximum": "number",
    "multipleOf": "number",
}
NULL_SCHEMA: JsonObject = {"type": "null"}


class SchemaNormaliser:
    """Normalises the schemas of a set of tools.

    Attributes:
        definitions: what the `$ref`s of the schemas lead to.
    """

    def __init__(self, dialect: SchemaSupport, limits: SizeLimits) -> None:
        self.definitions: JsonObject = {}
        self._dialect = dialect
        self._limits = limits
        self._lost: dict[tuple[str, str], DroppedKeyword] = {}
        self._parts = 0
        self._tool = ""
        self._names: dict[str, str] = {}
        self._open: tuple[str, ...] = ()  # recursive schemas that were entered and have consumed nothing yet
        self._entered: tuple[str, ...] = ()  # recursive schemas that are being written out
        self._references = SchemaReferences({}, "")

    @property
    def dropped(self) -> tuple[DroppedKeyword, ...]:
        """Keywords that are not enforced."""
        return tuple(self._lost.values())

    def arguments(self, tool: JsonObject, place: int) -> JsonObject:
        """Return the schema of a tool's arguments.

        Args:
            tool: the `function` of the tool.
            place: its position in the set.

        Raises:
            PlanError: the schema refers to something missing, or grows without bound.
        """
        parameters = tool.get("parameters") or {}
        if not isinstance(parameters, dict):
            raise PlanError(f"tool {tool['name']}: its parameters are no JSON Schema object")
        self._tool, self._names, self._open = f"t{place}", {}, ()
        self._references = SchemaReferences(parameters, str(tool["name"]))
        path = f"$[{place}].parameters"
        given = {**parameters, "type": "object"}
        if not {"properties", "additionalProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf"} & set(
            given
        ):
            given["properties"] = {}
        return self._schema(given, path, 0)

    def text(self) -> JsonObject:
        """Return the schema of any text, with a maximum length where the constraint has one."""
        return self._string({}, "")

    def drop(self, path: str, keyword: str, value: Any, kept: str = "") -> None:
        """Record that a keyword is not enforced."""
        found = DroppedKeyword(f"{path}.{keyword}", keyword, self._dialect.name, render_value_start(value), kept)
        self._lost.setdefault((found.path, keyword), found)

    def _schema(self, part: Any, path: str, depth: int) -> JsonObject:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise PlanError(f"the schemas of the tools have more than {MAX_PARTS} parts with references written out")
        if not isinstance(part, dict):
            return self._anything(MAX_ANY_LEVELS)
        if depth > MAX_DEPTH:
            self.drop(path, "depth", MAX_DEPTH, "anything")
            return self._anything(1)
        pointer = self._recursive(part)
        if pointer:
            return (self._definition if self._dialect.recursion else self._unrolled)(pointer, path, depth)
        flat = self._flat(part, path, 0)
        for keyword in UNSUPPORTED_KEYWORDS:
            if keyword in flat:
                self.drop(path, keyword, flat[keyword])
        return self._union(flat, path, depth) or self._typed(flat, path, depth)

    def _recursive(self, part: Mapping[str, Any]) -> str:
        """Return the pointer of a schema that is only a reference to itself; "" for other schemas."""
        if "$ref" not in part and "allOf" not in part:
            return ""
        unsupported = [keyword for keyword in part if keyword not in ANNOTATIONS]
        if unsupported == ["allOf"] and len(part["allOf"]) == 1 and isinstance(part["allOf"][0], dict):
            return self._recursive(part["allOf"][0])
        pointer = part["$ref"] if unsupported == ["$ref"] else ""
        target = self._references.target(pointer) if pointer else None
        return pointer if target is not None and self._references.is_recursive(pointer) else ""

    def _definition(self, pointer: str, path: str, depth: int) -> JsonObject:
        if pointer in self._open:
            return {}  # nothing was consumed since: the same again adds nothing
        if pointer not in self._names:
            name = self._names[pointer] = f"{self._tool}_{len(self._names)}"
            before, self._open = self._open, (*self._open, pointer)
            target = self._references.target(pointer)
            while isinstance(target, dict) and self._recursive(target) and self._recursive(target) not in self._open:
                self._open = (*self._open, self._recursive(target))
                target = self._references.target(self._recursive(target))
            self.definitions[name] = self._schema(target, path, depth + 1) or self._endless(path, pointer)
            self._open = before
        return {"$ref": f"#/$defs/{self._names[pointer]}"}

    def _unrolled(self, pointer: str, path: str, depth: int) -> JsonObject:
        if self._entered.count(pointer) >= MAX_UNROLLED_LEVELS:
            self.drop(path, "$ref", pointer, f"{MAX_UNROLLED_LEVELS} levels of it")
            return self._anything(1)
        before, self._entered = self._entered, (*self._entered, pointer)
        made = self._schema(self._references.target(pointer), path, depth + 1)
        self._entered = before
        return made

    def _endless(self, path: str, pointer: str) -> JsonObject:
        self.drop(path, "$ref", pointer, "anything: the reference leads only to itself")
        return self._anything(MAX_ANY_LEVELS)

    def _flat(self, part: Mapping[str, Any], path: str, depth: int) -> JsonObject:
        """Return the schema without `$ref` and `allOf` at its top."""
        result = {keyword: value for keyword, value in part.items() if keyword not in ("$ref", "allOf")}
        if depth > MAX_DEPTH or len(result) == len(part):
            return result
        branches = list(part.get("allOf") or ())
        pointer = part.get("$ref")
        if isinstance(pointer, str):
            target = self._references.target(pointer)
            if target is None:
                self.drop(path, "$ref", pointer)
            branches.append(target)
        for branch in branches:
            if isinstance(branch, dict):
                flat = self._flat(branch, path, depth + 1)
                result = merge_schemas(result, flat, lambda keyword, value: self.drop(path, keyword, value))
        return result

    def _union(self, flat: JsonObject, path: str, depth: int) -> JsonObject:
        """Return the alternatives of a schema, each with the keywords beside them; {} if there are none."""
        keyword = "anyOf" if flat.get("anyOf") else "oneOf"
        options = flat.get(keyword)
        if not isinstance(options, list) or not options:
            return {}
        if keyword == "anyOf" and flat.get("oneOf"):
            self.drop(path, "oneOf", flat["oneOf"])
        if keyword == "oneOf":
            self.drop(path, "oneOf", options, "as anyOf: more than one may fit")
        beside = {
            name: value
            for name, value in flat.items()
            if name not in ("anyOf", "oneOf", *UNSUPPORTED_KEYWORDS, *ANNOTATIONS)
        }
        found: list[JsonObject] = []
        for place, option in enumerate(options):
            at = f"{path}.{keyword}[{place}]"
            both = {"allOf": [option, beside]} if beside else option
            made = self._schema(both, at, depth + 1)
            found += [branch for branch in made.get("anyOf", [made] if made else []) if branch not in found]
        return _build_any_of(found)

    def _typed(self, flat: JsonObject, path: str, depth: int) -> JsonObject:
        types = self._types(flat)
        fixed = [flat["const"]] if "const" in flat else flat.get("enum")
        if any(type(value) not in self._dialect.enum_types for value in fixed or ()):
            keyword = "const" if "const" in flat else "enum"
            self.drop(path, keyword, flat[keyword])
            fixed = None
        if isinstance(fixed, list) and fixed:
            fitting = [value for value in fixed if not types or _has_type(value, types)] or fixed
            return {"enum": fitting}
        if not types:
            return self._anything(MAX_ANY_LEVELS)
        return _build_any_of([self._one_type(name, flat, path, depth) for name in types])

    def _types(self, flat: JsonObject) -> list[str]:
        given = flat.get("type")
        if isinstance(given, str) and "nullable" not in flat:
            return [given]
        named = [given] if isinstance(given, str) else given if isinstance(given, list) else []
        if not named and "enum" not in flat and "const" not in flat:
            named = [kind for keyword, kind in IMPLIED_TYPES.items() if keyword in flat][:1]
        extra = ["null"] if flat.get("nullable") is True and named else []
        return list(dict.fromkeys([*(name for name in named if isinstance(name, str)), *extra]))

    def _one_type(self, name: str, flat: JsonObject, path: str, depth: int) -> JsonObject:
        if name == "string":
            return self._string(flat, path)
        if name in ("integer", "number"):
            return normalise_number(name, flat, self._dialect, lambda keyword: self.drop(path, keyword, flat[keyword]))
        if name in ("boolean", "null"):
            return {"type": name}
        if name not in ("array", "object"):
            raise PlanError(f"the schema of a tool names the type {name!r}, which JSON does not have")
        before, self._open = self._open, ()
        made = self._array(flat, path, depth) if name == "array" else self._object(flat, path, depth)
        self._open = before
        return made

    def _string(self, flat: JsonObject, path: str) -> JsonObject:
        return normalise_string(
            flat, self._dialect, self._limits, lambda keyword: self.drop(path, keyword, flat[keyword])
        )

    def _array(self, flat: JsonObject, path: str, depth: int) -> JsonObject:
        for keyword in ("uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems"):
            if flat.get(keyword) not in (None, False):
                self.drop(path, keyword, flat[keyword])
        items, prefix = flat.get("items"), flat.get("prefixItems")
        if isinstance(items, list):  # how older drafts write it
            items, prefix = flat.get("additionalItems"), items
        result: JsonObject = {"type": "array"}
        first = [self._schema(part, f"{path}.prefixItems[{at}]", depth + 1) for at, part in enumerate(prefix or ())]
        rest = {} if items is False else self._schema(items, f"{path}.items", depth + 1)
        most = min(flat.get("maxItems", max(self._limits.max_items, flat.get("minItems", 0))), 10**6)
        if first and "prefixItems" in self._dialect.keeps:
            result["prefixItems"] = first
        elif first:
            self.drop(path, "prefixItems", prefix, "each item may be any of them")
            rest = _build_any_of([*first, *([rest] if rest else [])])
        most = min(most, len(first)) if items is False else most
        result["items"] = rest or (False if "prefixItems" in result else NULL_SCHEMA)
        return {**result, **self._item_counts(flat, path, most)}

    def _item_counts(self, flat: JsonObject, path: str, most: int) -> JsonObject:
        least, held = min(flat.get("minItems", 0), most), self._dialect.least_items
        if held is not None and least > held:
            self.drop(path, "minItems", least, f"at least {held}")
            least = held
        bounds = {"minItems": least} if least else {}
        if "maxItems" in self._dialect.keeps:
            return {**bounds, "maxItems": most}
        if "maxItems" in flat:
            self.drop(path, "maxItems", flat["maxItems"])
        return bounds

    def _object(self, flat: JsonObject, path: str, depth: int) -> JsonObject:
        properties = flat.get("properties")
        named = {
            name: self._schema(part, f"{path}.properties.{name}", depth + 1)
            for name, part in (properties.items() if isinstance(properties, dict) else ())
            if part is not False
        }
        required = [name for name in flat.get("required") or () if isinstance(name, str)]
        for name in required:
            named.setdefault(name, self._anything(MAX_ANY_LEVELS))
        if self._dialect.closed:
            return self._closed_object(flat, path, named, required)
        additional = self._others(flat, path, depth, closed=bool(named) or isinstance(properties, dict))
        counts = self._counts(flat, path, additional, counted=named.keys() <= set(required))
        kept = {"properties": named} if named or additional is False else {}
        needed = [name for name in named if name in required]
        patterns = self._patterns(flat, path, depth)
        more = {"additionalProperties": additional, **({"patternProperties": patterns} if patterns else {}), **counts}
        return {"type": "object", **kept, **({"required": needed} if needed else {}), **more}

    def _closed_object(self, flat: JsonObject, path: str, named: JsonObject, required: list[str]) -> JsonObject:
        for keyword in ("patternProperties", "propertyNames", "dependentRequired", "minProperties", "maxProperties"):
            if keyword in flat:
                self.drop(path, keyword, flat[keyword])
        if flat.get("additionalProperties", not named) not in (None, False):
            self.drop(path, "additionalProperties", flat.get("additionalProperties", True), "closed")
        held, needed = named, [name for name in named if name in required]
        if self._dialect.strict:
            held = {name: part if name in required else make_nullable(part) for name, part in named.items()}
            needed = list(held)
        return {"type": "object", "properties": held, "required": needed, "additionalProperties": False}

    def _others(self, flat: JsonObject, path: str, depth: int, *, closed: bool) -> Any:
        """Return the schema of other keys, or False for none.

        Where patterns of names are not enforced, any name may have a value of one of them.
        """
        given = flat.get("additionalProperties")
        patterns = flat.get("patternProperties")
        if isinstance(patterns, dict) and patterns and "patternProperties" not in self._dialect.keeps:
            self.drop(path, "patternProperties", patterns, "any name may have such a value")
            parts = [
                self._schema(part, f"{path}.patternProperties.{name}", depth + 1) for name, part in patterns.items()
            ]
            return _build_any_of(parts)
        if given is False or (given is None and (closed or patterns)):
            return False
        return self._schema(given, f"{path}.additionalProperties", depth + 1)

    def _patterns(self, flat: JsonObject, path: str, depth: int) -> JsonObject:
        given = flat.get("patternProperties")
        if not isinstance(given, dict) or "patternProperties" not in self._dialect.keeps:
            return {}
        return {name: self._schema(part, f"{path}.patternProperties.{name}", depth + 1) for name, part in given.items()}

    def _counts(self, flat: JsonObject, path: str, additional: Any, *, counted: bool) -> JsonObject:
        """Return bounds of the number of keys.

        They are enforced only if every named key is required (`counted`).
        """
        for keyword in ("propertyNames", "dependentRequired"):
            if keyword in flat:
                self.drop(path, keyword, flat[keyword])
        if additional is not False and flat.get("unevaluatedProperties") is not None:
            self.drop(path, "unevaluatedProperties", flat["unevaluatedProperties"])
        given: JsonObject = {name: flat[name] for name in ("minProperties", "maxProperties") if name in flat}
        if "maxProperties" in self._dialect.keeps and counted:
            return given if additional is False else {"maxProperties": self._limits.max_items, **given}
        for keyword, value in given.items():
            self.drop(path, keyword, value)
        return {}

    def _anything(self, levels: int) -> JsonObject:
        """Return the schema of any JSON value of at most so many levels; a scalar is the first level."""
        name = f"any{levels}"
        if name not in self.definitions:
            self.definitions[name] = {}
            options = [self.text(), {"type": "number"}, {"type": "boolean"}, NULL_SCHEMA]
            inner = self._anything(levels - 1) if levels > 1 else {}
            if inner:
                options.append({"type": "array", "items": inner, **self._item_counts({}, "", self._limits.max_items)})
            if inner and not self._dialect.closed:
                options.append({"type": "object", "additionalProperties": inner})
            self.definitions[name] = {"anyOf": options}
        return {"$ref": f"#/$defs/{name}"}


def make_nullable(schema: JsonObject) -> JsonObject:
    """Return the schema with null allowed, by which a strict object leaves a key out."""
    options = schema.get("anyOf", [schema])
    return schema if NULL_SCHEMA in options else {"anyOf": [*options, NULL_SCHEMA]}


def _build_any_of(options: list[JsonObject]) -> JsonObject:
    if len(options) < 2:
        return options[0] if options else {}
    return {"anyOf": options}


def _has_type(value: Any, types: list[str]) -> bool:
    kinds = {str: ("string",), bool: ("boolean",), int: ("integer", "number"), float: ("number",)}
    kinds |= {list: ("array",), dict: ("object",), type(None): ("null",)}
    return bool(set(kinds.get(type(value), ())) & set(types))
