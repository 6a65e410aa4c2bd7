"""A tool's JSON Schema in the form that a constraint enforces.

References are replaced by their targets, strings and lists get a maximum length, objects are closed, and keywords that
the constraint would ignore are left out and recorded as dropped. The result has a simple form: `type` is one string,
alternatives are `anyOf`, a `const` is an `enum` of one value, and a `$ref` refers to `#/$defs/NAME`. Where any value is
allowed, lists and objects nest at most three levels deep. An object with `properties` and without
`additionalProperties` has no other keys.
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

MAX_PARTS = 10_000  # schemas inside of the schemas of all tools
MAX_DEPTH = 40  # levels of nested schemas
MAX_ANY_LEVELS = 4  # levels of a value without a schema; a scalar is one level
MAX_UNROLLED_LEVELS = 3  # levels of a recursive schema, where a constraint does not support recursion
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
    """A normaliser of the schemas of a set of tools.

    Attributes:
        definitions: the schemas to which the `$ref`s of the results refer, by name.
    """

    def __init__(self, support: SchemaSupport, limits: SizeLimits) -> None:
        self.definitions: JsonObject = {}
        self._support = support
        self._limits = limits
        self._dropped: dict[tuple[str, str], DroppedKeyword] = {}
        self._part_count = 0
        self._name_prefix = ""
        self._names: dict[str, str] = {}
        self._unconsumed: tuple[str, ...] = ()  # pointers of recursive schemas entered since the last list or object
        self._unrolling: tuple[
            str, ...
        ] = ()  # pointers of the recursive schemas that are being unrolled, outermost first
        self._references = SchemaReferences({}, "")

    @property
    def dropped(self) -> tuple[DroppedKeyword, ...]:
        """The keywords that are not enforced, each path once, in the order in which they were found."""
        return tuple(self._dropped.values())

    def normalise_arguments(self, tool: JsonObject, index: int) -> JsonObject:
        """Return the normalised schema of a tool's arguments.

        Args:
            tool: the `function` of the tool.
            index: the index of the tool in the set, for the paths of dropped keywords.

        Raises:
            PlanError: the parameters are not an object, the schema has a reference without a target or an unknown type,
                or the schemas have more than MAX_PARTS parts.
        """
        parameters = tool.get("parameters") or {}
        if not isinstance(parameters, dict):
            raise PlanError(f"tool {tool['name']}: its parameters are no JSON Schema object")
        self._name_prefix, self._names, self._unconsumed = f"t{index}", {}, ()
        self._references = SchemaReferences(parameters, str(tool["name"]))
        path = f"$[{index}].parameters"
        schema = {**parameters, "type": "object"}
        if not {"properties", "additionalProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf"} & set(
            schema
        ):
            schema["properties"] = {}
        return self._normalise(schema, path, 0)

    def build_text_schema(self) -> JsonObject:
        """Return the schema of any text, with a maximum length if the constraint enforces lengths."""
        return self._build_string({}, "")

    def drop(self, path: str, keyword: str, value: Any, kept: str = "") -> None:
        """Record that a keyword is not enforced. `kept` describes the part that is enforced instead."""
        dropped_keyword = DroppedKeyword(
            f"{path}.{keyword}", keyword, self._support.name, render_value_start(value), kept
        )
        self._dropped.setdefault((dropped_keyword.path, keyword), dropped_keyword)

    def _normalise(self, part: Any, path: str, depth: int) -> JsonObject:
        """Return the normalised form of a schema at any depth."""
        self._part_count += 1
        if self._part_count > MAX_PARTS:
            raise PlanError(f"the schemas of the tools have more than {MAX_PARTS} parts with references written out")
        if not isinstance(part, dict):
            return self._build_anything(MAX_ANY_LEVELS)
        if depth > MAX_DEPTH:
            self.drop(path, "depth", MAX_DEPTH, "anything")
            return self._build_anything(1)
        pointer = self._find_recursion(part)
        if pointer:
            return (self._build_definition if self._support.recursion else self._unroll)(pointer, path, depth)
        flat = self._flatten(part, path, 0)
        for keyword in UNSUPPORTED_KEYWORDS:
            if keyword in flat:
                self.drop(path, keyword, flat[keyword])
        return self._build_union(flat, path, depth) or self._build_typed(flat, path, depth)

    def _find_recursion(self, part: Mapping[str, Any]) -> str:
        """Return the pointer of a schema that is nothing but a recursive reference; "" for other schemas."""
        if "$ref" not in part and "allOf" not in part:
            return ""
        keywords = [keyword for keyword in part if keyword not in ANNOTATIONS]
        if keywords == ["allOf"] and len(part["allOf"]) == 1 and isinstance(part["allOf"][0], dict):
            return self._find_recursion(part["allOf"][0])
        pointer = part["$ref"] if keywords == ["$ref"] else ""
        target = self._references.find_target(pointer) if pointer else None
        return pointer if target is not None and self._references.is_recursive(pointer) else ""

    def _build_definition(self, pointer: str, path: str, depth: int) -> JsonObject:
        if pointer in self._unconsumed:
            return {}  # a reference back without a list or object between adds no value
        if pointer not in self._names:
            name = self._names[pointer] = f"{self._name_prefix}_{len(self._names)}"
            outer, self._unconsumed = self._unconsumed, (*self._unconsumed, pointer)
            target = self._references.find_target(pointer)
            while (
                isinstance(target, dict) and (inner := self._find_recursion(target)) and inner not in self._unconsumed
            ):
                self._unconsumed = (*self._unconsumed, inner)
                target = self._references.find_target(inner)
            self.definitions[name] = self._normalise(target, path, depth + 1) or self._build_endless(path, pointer)
            self._unconsumed = outer
        return {"$ref": f"#/$defs/{self._names[pointer]}"}

    def _unroll(self, pointer: str, path: str, depth: int) -> JsonObject:
        if self._unrolling.count(pointer) >= MAX_UNROLLED_LEVELS:
            self.drop(path, "$ref", pointer, f"{MAX_UNROLLED_LEVELS} levels of it")
            return self._build_anything(1)
        outer, self._unrolling = self._unrolling, (*self._unrolling, pointer)
        schema = self._normalise(self._references.find_target(pointer), path, depth + 1)
        self._unrolling = outer
        return schema

    def _build_endless(self, path: str, pointer: str) -> JsonObject:
        self.drop(path, "$ref", pointer, "anything: the reference leads only to itself")
        return self._build_anything(MAX_ANY_LEVELS)

    def _flatten(self, part: Mapping[str, Any], path: str, depth: int) -> JsonObject:
        """Return the schema with its own `$ref` and `allOf` merged into it."""
        result = {keyword: value for keyword, value in part.items() if keyword not in ("$ref", "allOf")}
        if depth > MAX_DEPTH or len(result) == len(part):
            return result
        branches = list(part.get("allOf") or ())
        pointer = part.get("$ref")
        if isinstance(pointer, str):
            target = self._references.find_target(pointer)
            if target is None:
                self.drop(path, "$ref", pointer)
            branches.append(target)
        for branch in branches:
            if isinstance(branch, dict):
                flat = self._flatten(branch, path, depth + 1)
                result = merge_schemas(result, flat, lambda keyword, value: self.drop(path, keyword, value))
        return result

    def _build_union(self, flat: JsonObject, path: str, depth: int) -> JsonObject:
        """Return the alternatives of a schema, each merged with the schema's other keywords; {} if there are none."""
        keyword = "anyOf" if flat.get("anyOf") else "oneOf"
        options = flat.get(keyword)
        if not isinstance(options, list) or not options:
            return {}
        if keyword == "anyOf" and flat.get("oneOf"):
            self.drop(path, "oneOf", flat["oneOf"])
        if keyword == "oneOf":
            self.drop(path, "oneOf", options, "as anyOf: more than one may fit")
        others = {
            name: value
            for name, value in flat.items()
            if name not in ("anyOf", "oneOf", *UNSUPPORTED_KEYWORDS, *ANNOTATIONS)
        }
        alternatives: list[JsonObject] = []
        for index, option in enumerate(options):
            option_path = f"{path}.{keyword}[{index}]"
            combined = {"allOf": [option, others]} if others else option
            schema = self._normalise(combined, option_path, depth + 1)
            alternatives += [
                branch for branch in schema.get("anyOf", [schema] if schema else []) if branch not in alternatives
            ]
        return _build_any_of(alternatives)

    def _build_typed(self, flat: JsonObject, path: str, depth: int) -> JsonObject:
        types = self._list_types(flat)
        listed_values = [flat["const"]] if "const" in flat else flat.get("enum")
        if any(type(value) not in self._support.enum_types for value in listed_values or ()):
            keyword = "const" if "const" in flat else "enum"
            self.drop(path, keyword, flat[keyword])
            listed_values = None
        if isinstance(listed_values, list) and listed_values:
            typed_values = [value for value in listed_values if not types or _has_type(value, types)] or listed_values
            return {"enum": typed_values}
        if not types:
            return self._build_anything(MAX_ANY_LEVELS)
        return _build_any_of([self._build_type(name, flat, path, depth) for name in types])

    def _list_types(self, flat: JsonObject) -> list[str]:
        declared = flat.get("type")
        if isinstance(declared, str) and "nullable" not in flat:
            return [declared]
        names = [declared] if isinstance(declared, str) else declared if isinstance(declared, list) else []
        if not names and "enum" not in flat and "const" not in flat:
            names = [json_type for keyword, json_type in IMPLIED_TYPES.items() if keyword in flat][:1]
        null_type = ["null"] if flat.get("nullable") is True and names else []
        return list(dict.fromkeys([*(name for name in names if isinstance(name, str)), *null_type]))

    def _build_type(self, name: str, flat: JsonObject, path: str, depth: int) -> JsonObject:
        if name == "string":
            return self._build_string(flat, path)
        if name in ("integer", "number"):
            return normalise_number(name, flat, self._support, lambda keyword: self.drop(path, keyword, flat[keyword]))
        if name in ("boolean", "null"):
            return {"type": name}
        if name not in ("array", "object"):
            raise PlanError(f"the schema of a tool names the type {name!r}, which JSON does not have")
        outer, self._unconsumed = self._unconsumed, ()
        schema = self._build_array(flat, path, depth) if name == "array" else self._build_object(flat, path, depth)
        self._unconsumed = outer
        return schema

    def _build_string(self, flat: JsonObject, path: str) -> JsonObject:
        return normalise_string(
            flat, self._support, self._limits, lambda keyword: self.drop(path, keyword, flat[keyword])
        )

    def _build_array(self, flat: JsonObject, path: str, depth: int) -> JsonObject:
        """Return the normalised form of an array schema."""
        for keyword in ("uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems"):
            if flat.get(keyword) not in (None, False):
                self.drop(path, keyword, flat[keyword])
        items, prefix = flat.get("items"), flat.get("prefixItems")
        if isinstance(items, list):  # older drafts of JSON Schema have the prefix in `items`
            items, prefix = flat.get("additionalItems"), items
        result: JsonObject = {"type": "array"}
        prefix_schemas = [
            self._normalise(part, f"{path}.prefixItems[{index}]", depth + 1) for index, part in enumerate(prefix or ())
        ]
        items_schema = {} if items is False else self._normalise(items, f"{path}.items", depth + 1)
        most = min(flat.get("maxItems", max(self._limits.max_items, flat.get("minItems", 0))), 10**6)
        if prefix_schemas and "prefixItems" in self._support.keeps:
            result["prefixItems"] = prefix_schemas
        elif prefix_schemas:
            self.drop(path, "prefixItems", prefix, "each item may be any of them")
            items_schema = _build_any_of([*prefix_schemas, *([items_schema] if items_schema else [])])
        most = min(most, len(prefix_schemas)) if items is False else most
        result["items"] = items_schema or (False if "prefixItems" in result else NULL_SCHEMA)
        return {**result, **self._build_item_counts(flat, path, most)}

    def _build_item_counts(self, flat: JsonObject, path: str, most: int) -> JsonObject:
        least, max_minimum = min(flat.get("minItems", 0), most), self._support.least_items
        if max_minimum is not None and least > max_minimum:
            self.drop(path, "minItems", least, f"at least {max_minimum}")
            least = max_minimum
        bounds = {"minItems": least} if least else {}
        if "maxItems" in self._support.keeps:
            return {**bounds, "maxItems": most}
        if "maxItems" in flat:
            self.drop(path, "maxItems", flat["maxItems"])
        return bounds

    def _build_object(self, flat: JsonObject, path: str, depth: int) -> JsonObject:
        """Return the normalised form of an object schema."""
        properties = flat.get("properties")
        members = {
            name: self._normalise(part, f"{path}.properties.{name}", depth + 1)
            for name, part in (properties.items() if isinstance(properties, dict) else ())
            if part is not False
        }
        required = [name for name in flat.get("required") or () if isinstance(name, str)]
        for name in required:
            members.setdefault(name, self._build_anything(MAX_ANY_LEVELS))
        if self._support.closed:
            return self._build_closed_object(flat, path, members, required)
        additional = self._build_other_keys(flat, path, depth, closed=bool(members) or isinstance(properties, dict))
        counts = self._build_key_counts(flat, path, additional, counted=members.keys() <= set(required))
        named = {"properties": members} if members or additional is False else {}
        required_names = [name for name in members if name in required]
        patterns = self._build_patterns(flat, path, depth)
        more = {"additionalProperties": additional, **({"patternProperties": patterns} if patterns else {}), **counts}
        return {"type": "object", **named, **({"required": required_names} if required_names else {}), **more}

    def _build_closed_object(self, flat: JsonObject, path: str, members: JsonObject, required: list[str]) -> JsonObject:
        for keyword in ("patternProperties", "propertyNames", "dependentRequired", "minProperties", "maxProperties"):
            if keyword in flat:
                self.drop(path, keyword, flat[keyword])
        if flat.get("additionalProperties", not members) not in (None, False):
            self.drop(path, "additionalProperties", flat.get("additionalProperties", True), "closed")
        sent, required_names = members, [name for name in members if name in required]
        if self._support.strict:
            sent = {name: part if name in required else make_nullable(part) for name, part in members.items()}
            required_names = list(sent)
        return {"type": "object", "properties": sent, "required": required_names, "additionalProperties": False}

    def _build_other_keys(self, flat: JsonObject, path: str, depth: int, *, closed: bool) -> Any:
        """Return the schema of keys that are not in `properties`, or False if there may be none.

        If the constraint does not enforce `patternProperties`, any key may have a value of one of their schemas.
        """
        additional = flat.get("additionalProperties")
        patterns = flat.get("patternProperties")
        if isinstance(patterns, dict) and patterns and "patternProperties" not in self._support.keeps:
            self.drop(path, "patternProperties", patterns, "any name may have such a value")
            schemas = [
                self._normalise(part, f"{path}.patternProperties.{name}", depth + 1) for name, part in patterns.items()
            ]
            return _build_any_of(schemas)
        if additional is False or (additional is None and (closed or patterns)):
            return False
        return self._normalise(additional, f"{path}.additionalProperties", depth + 1)

    def _build_patterns(self, flat: JsonObject, path: str, depth: int) -> JsonObject:
        patterns = flat.get("patternProperties")
        if not isinstance(patterns, dict) or "patternProperties" not in self._support.keeps:
            return {}
        return {
            name: self._normalise(part, f"{path}.patternProperties.{name}", depth + 1)
            for name, part in patterns.items()
        }

    def _build_key_counts(self, flat: JsonObject, path: str, additional: Any, *, counted: bool) -> JsonObject:
        """Return the enforced bounds of the number of keys, and record the other keywords as dropped.

        Args:
            flat: the schema without references.
            path: its path.
            additional: the schema of other keys, or False for none.
            counted: whether every named key is required; otherwise bounds are not enforced.
        """
        for keyword in ("propertyNames", "dependentRequired"):
            if keyword in flat:
                self.drop(path, keyword, flat[keyword])
        if additional is not False and flat.get("unevaluatedProperties") is not None:
            self.drop(path, "unevaluatedProperties", flat["unevaluatedProperties"])
        bounds: JsonObject = {name: flat[name] for name in ("minProperties", "maxProperties") if name in flat}
        if "maxProperties" in self._support.keeps and counted:
            return bounds if additional is False else {"maxProperties": self._limits.max_items, **bounds}
        for keyword, value in bounds.items():
            self.drop(path, keyword, value)
        return {}

    def _build_anything(self, levels: int) -> JsonObject:
        """Return the schema of any JSON value of at most `levels` levels; a scalar is one level."""
        name = f"any{levels}"
        if name not in self.definitions:
            self.definitions[name] = {}
            options = [self.build_text_schema(), {"type": "number"}, {"type": "boolean"}, NULL_SCHEMA]
            inner = self._build_anything(levels - 1) if levels > 1 else {}
            if inner:
                options.append(
                    {"type": "array", "items": inner, **self._build_item_counts({}, "", self._limits.max_items)}
                )
            if inner and not self._support.closed:
                options.append({"type": "object", "additionalProperties": inner})
            self.definitions[name] = {"anyOf": options}
        return {"$ref": f"#/$defs/{name}"}


def make_nullable(schema: JsonObject) -> JsonObject:
    """Return the schema with null allowed; in a strict object null stands for a key that is left out."""
    options = schema.get("anyOf", [schema])
    return schema if NULL_SCHEMA in options else {"anyOf": [*options, NULL_SCHEMA]}


def _build_any_of(options: list[JsonObject]) -> JsonObject:
    if len(options) < 2:
        return options[0] if options else {}
    return {"anyOf": options}


def _has_type(value: Any, types: list[str]) -> bool:
    names_by_type = {str: ("string",), bool: ("boolean",), int: ("integer", "number"), float: ("number",)}
    names_by_type |= {list: ("array",), dict: ("object",), type(None): ("null",)}
    return bool(set(names_by_type.get(type(value), ())) & set(types))
