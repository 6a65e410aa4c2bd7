"""A tool's JSON Schema in the form that a constraint enforces.

In this form:
- References that are not recursive are replaced by their targets.
- Strings without `pattern` and `format`, and lists, get a maximum length if the constraint enforces one.
- Keywords that restrict values but are not enforced are left out and recorded as dropped.
- A `type` is one string, alternatives are `anyOf`, a `const` is an `enum`, and a `$ref` refers to `#/$defs/NAME`.
- Where any value is allowed, lists and objects nest at most three levels deep.
- An object with `properties`, but neither `additionalProperties` nor `patternProperties`, has no other keys.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from toolbench.engine.constraints.dropped_keywords import ANY_SCALAR, DroppedKeyword, render_value_start
from toolbench.engine.constraints.references import SchemaReferences
from toolbench.engine.constraints.scalars import normalise_number, normalise_string
from toolbench.engine.constraints.schema_merge import ANNOTATIONS, merge_schemas
from toolbench.engine.constraints.schema_support import SchemaSupport, SizeLimits
from toolbench.engine.constraints.schema_types import has_type, list_types
from toolbench.engine.constraints.size_bounds import normalise_item_counts, normalise_key_counts
from toolbench.engine.constraints.unions import NULL_SCHEMA, build_union, make_nullable
from toolbench.engine.errors import PlanError
from toolbench.engine.json_paths import build_member_path
from toolbench.engine.strict_json import write_json
from toolbench.engine.types import JsonObject

MAX_PARTS = 10_000  # schemas, at any depth, in the schemas of all tools, counted with references written out
MAX_DEPTH = 40  # levels of nested schemas
MAX_ANY_LEVELS = 4  # levels of a value that has no schema of its own; a scalar is one level
MAX_UNROLLED_LEVELS = 3  # levels of a recursive schema, if the constraint does not allow recursion
UNSUPPORTED_KEYWORDS = ("not", "if", "then", "else", "dependentSchemas", "dependencies", "$dynamicRef")


class SchemaNormaliser:
    """A converter of the schemas of a set of tools to the form that a constraint enforces.

    Args:
        support: the keywords that the constraint enforces.
        limits: limits of strings and lists whose schema has none.
        keeps_descriptions: whether descriptions are kept. One beside a `$ref` never is, because OpenAI refuses it.

    Attributes:
        definitions: the schemas to which the `$ref`s of the normalised schemas refer, by name.
    """

    def __init__(self, support: SchemaSupport, limits: SizeLimits, *, keeps_descriptions: bool = False) -> None:
        self.definitions: JsonObject = {}
        self._support = support
        self._limits = limits
        self._keeps_descriptions = keeps_descriptions
        self._dropped_by_keyword: dict[tuple[str, str], DroppedKeyword] = {}
        self._part_count = 0
        self._name_prefix = ""
        self._name_by_pointer: dict[str, str] = {}  # names of definitions, by the pointer in the tool's schema
        # Pointers of the recursive schemas around the current one, up to the nearest list or object.
        self._entered_pointers: tuple[str, ...] = ()
        # Pointers of the recursive schemas that are being unrolled, outermost first.
        self._unrolled_pointers: tuple[str, ...] = ()
        self._references = SchemaReferences({}, "")

    @property
    def dropped_keywords(self) -> tuple[DroppedKeyword, ...]:
        """The keywords that are not enforced, each path once, in the order in which they were found."""
        return tuple(self._dropped_by_keyword.values())

    def normalise_arguments(self, tool: JsonObject, index: int) -> JsonObject:
        """Return the normalised schema of a tool's arguments.

        Args:
            tool: the `function` object of the tool.
            index: the index of the tool in the set, for the paths of dropped keywords.

        Raises:
            PlanError: the parameters are not an object; a type is unknown; a reference leads to another document or to
                a missing part; or the schemas of all tools so far have more than MAX_PARTS parts.
        """
        parameters = tool.get("parameters") or {}
        if not isinstance(parameters, dict):
            raise PlanError(f"tool {tool['name']}: its parameters are no JSON Schema object")
        self._name_prefix, self._name_by_pointer, self._entered_pointers = f"t{index}", {}, ()
        self._references = SchemaReferences(parameters, str(tool["name"]))
        path = f"$[{index}].parameters"
        schema = {**parameters, "type": "object"}
        if not {"properties", "additionalProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf"} & set(
            schema
        ):
            schema["properties"] = {}  # so that only required keys are allowed
        return self._normalise(schema, path, 0)

    def build_text_schema(self) -> JsonObject:
        """Return the schema of any string, with a maximum length if the constraint enforces lengths."""
        return self._build_string({}, "")

    def record_dropped(self, path: str, keyword: str, value: Any, replacement: str = "") -> None:
        """Record that a keyword is not enforced. `replacement` describes what is enforced instead."""
        dropped_keyword = DroppedKeyword(
            f"{path}.{keyword}", keyword, self._support.name, render_value_start(value), replacement
        )
        self._dropped_by_keyword.setdefault((dropped_keyword.path, keyword), dropped_keyword)

    def _normalise(self, part: Any, path: str, depth: int) -> JsonObject:
        """Return the normalised form of a schema; `depth` is the number of schemas around it.

        The result is {} for a reference back to a definition that is being built, if no list or object is in between.
        """
        self._part_count += 1
        if self._part_count > MAX_PARTS:
            raise PlanError(f"the schemas of the tools have more than {MAX_PARTS} parts with references written out")
        if not isinstance(part, dict):
            return self._build_any_value(MAX_ANY_LEVELS)
        if depth > MAX_DEPTH:
            self.record_dropped(path, "depth", MAX_DEPTH, ANY_SCALAR)
            return self._build_any_value(1)
        pointer = self._find_recursion(part)
        if pointer:
            return (self._build_definition if self._support.allows_recursion else self._unroll)(pointer, path, depth)
        merged_schema = self._merge_references(part, path, 0)
        for keyword in UNSUPPORTED_KEYWORDS:
            if keyword in merged_schema:
                self.record_dropped(path, keyword, merged_schema[keyword])
        result = self._build_union(merged_schema, path, depth) or self._build_typed_schema(merged_schema, path, depth)
        description = merged_schema.get("description")
        if self._keeps_descriptions and isinstance(description, str) and description and "$ref" not in result:
            return {**result, "description": description}
        return result

    def _find_recursion(self, part: Mapping[str, Any]) -> str:
        """Return the pointer of a schema that is only a recursive reference, apart from annotations; "" for others."""
        if "$ref" not in part and "allOf" not in part:
            return ""
        keywords = [keyword for keyword in part if keyword not in ANNOTATIONS]
        if keywords == ["allOf"] and len(part["allOf"]) == 1 and isinstance(part["allOf"][0], dict):
            return self._find_recursion(part["allOf"][0])
        pointer = part["$ref"] if keywords == ["$ref"] else ""
        target = self._references.find_target(pointer) if pointer else None
        return pointer if target is not None and self._references.is_recursive(pointer) else ""

    def _build_definition(self, pointer: str, path: str, depth: int) -> JsonObject:
        """Return a `$ref` to the definition of a recursive schema; add the definition if it is missing."""
        if pointer in self._entered_pointers:
            return {}  # a reference back without a list or object between allows no further value
        if pointer not in self._name_by_pointer:
            name = self._name_by_pointer[pointer] = f"{self._name_prefix}_{len(self._name_by_pointer)}"
            outer_pointers, self._entered_pointers = self._entered_pointers, (*self._entered_pointers, pointer)
            target = self._references.find_target(pointer)
            while (  # the target is itself only a reference
                isinstance(target, dict)
                and (inner_pointer := self._find_recursion(target))
                and inner_pointer not in self._entered_pointers
            ):
                self._entered_pointers = (*self._entered_pointers, inner_pointer)
                target = self._references.find_target(inner_pointer)
            self.definitions[name] = self._normalise(target, path, depth + 1) or self._build_self_reference(
                path, pointer
            )
            self._entered_pointers = outer_pointers
        return {"$ref": f"#/$defs/{self._name_by_pointer[pointer]}"}

    def _unroll(self, pointer: str, path: str, depth: int) -> JsonObject:
        """Return a recursive schema written out MAX_UNROLLED_LEVELS times; the next level allows any scalar."""
        if self._unrolled_pointers.count(pointer) >= MAX_UNROLLED_LEVELS:
            self.record_dropped(path, "$ref", pointer, f"{MAX_UNROLLED_LEVELS} levels of it; inside them, {ANY_SCALAR}")
            return self._build_any_value(1)
        outer_pointers, self._unrolled_pointers = self._unrolled_pointers, (*self._unrolled_pointers, pointer)
        schema = self._normalise(self._references.find_target(pointer), path, depth + 1)
        self._unrolled_pointers = outer_pointers
        return schema

    def _build_self_reference(self, path: str, pointer: str) -> JsonObject:
        """Return the schema of any value, for a definition that consists only of references back to itself."""
        self.record_dropped(path, "$ref", pointer, "any value, since the reference refers only to itself")
        return self._build_any_value(MAX_ANY_LEVELS)

    def _merge_references(self, part: Mapping[str, Any], path: str, depth: int) -> JsonObject:
        """Return the schema with its `$ref` and `allOf` merged into it; `depth` is the number of merges around it."""
        result = {keyword: value for keyword, value in part.items() if keyword not in ("$ref", "allOf")}
        if depth > MAX_DEPTH or len(result) == len(part) or self._part_count > MAX_PARTS:
            return result
        branches = list(part.get("allOf") or ())
        pointer = part.get("$ref")
        if isinstance(pointer, str):
            target = self._references.find_target(pointer)
            if target is None:
                self.record_dropped(path, "$ref", pointer)
            branches.append(target)
        for branch in branches:
            self._part_count += 1
            if isinstance(branch, dict):
                merged_schema = self._merge_references(branch, path, depth + 1)
                result = merge_schemas(
                    result, merged_schema, lambda keyword, value: self.record_dropped(path, keyword, value)
                )
        return result

    def _build_union(self, schema: JsonObject, path: str, depth: int) -> JsonObject:
        """Return a union of a schema's alternatives, each with the schema's other keywords; {} if it has none."""
        keyword = "anyOf" if schema.get("anyOf") else "oneOf"
        options = schema.get(keyword)
        if not isinstance(options, list) or not options:
            return {}
        if keyword == "anyOf" and schema.get("oneOf"):
            self.record_dropped(path, "oneOf", schema["oneOf"])
        if keyword == "oneOf":
            self.record_dropped(path, "oneOf", options, "as anyOf: more than one may fit")
        other_keywords = {
            name: value
            for name, value in schema.items()
            if name not in ("anyOf", "oneOf", *UNSUPPORTED_KEYWORDS, *ANNOTATIONS)
        }
        alternatives: dict[str, JsonObject] = {}  # by their JSON text, so that each occurs once
        for index, option in ((index, option) for index, option in enumerate(options) if option is not False):
            option_path = f"{path}.{keyword}[{index}]"
            combined_schema = {"allOf": [option, other_keywords]} if other_keywords else option
            result = self._normalise(combined_schema, option_path, depth + 1)
            branches = result.get("anyOf", [result] if result else [])
            alternatives |= {write_json(branch): branch for branch in branches}
        return build_union(list(alternatives.values()))

    def _build_typed_schema(self, schema: JsonObject, path: str, depth: int) -> JsonObject:
        """Return a schema of the listed values, or else of one alternative for each type, or else of any value."""
        types = list_types(schema)
        listed_values = [schema["const"]] if "const" in schema else schema.get("enum")
        if any(type(value) not in self._support.enum_types for value in listed_values or ()):
            keyword = "const" if "const" in schema else "enum"
            self.record_dropped(path, keyword, schema[keyword])
            listed_values = None
        if isinstance(listed_values, list) and listed_values:
            typed_values = [value for value in listed_values if not types or has_type(value, types)] or listed_values
            return {"enum": typed_values}
        if not types:
            return self._build_any_value(MAX_ANY_LEVELS)
        return build_union([self._build_type(name, schema, path, depth) for name in types])

    def _build_type(self, name: str, schema: JsonObject, path: str, depth: int) -> JsonObject:
        if name == "string":
            return self._build_string(schema, path)
        if name in ("integer", "number"):
            return normalise_number(
                name, schema, self._support, lambda keyword: self.record_dropped(path, keyword, schema[keyword])
            )
        if name in ("boolean", "null"):
            return {"type": name}
        if name not in ("array", "object"):
            raise PlanError(f"the schema of a tool names the type {name!r}, which JSON does not have")
        outer_pointers, self._entered_pointers = self._entered_pointers, ()
        build = self._build_array if name == "array" else self._build_object
        result = build(schema, path, depth)
        self._entered_pointers = outer_pointers
        return result

    def _build_string(self, schema: JsonObject, path: str) -> JsonObject:
        return normalise_string(
            schema, self._support, self._limits, lambda keyword: self.record_dropped(path, keyword, schema[keyword])
        )

    def _build_array(self, schema: JsonObject, path: str, depth: int) -> JsonObject:
        """Return the normalised form of an array schema."""
        for keyword in ("uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems"):
            if schema.get(keyword) not in (None, False):
                self.record_dropped(path, keyword, schema[keyword])
        items, prefix_items = schema.get("items"), schema.get("prefixItems")
        if isinstance(items, list):  # older drafts of JSON Schema have the prefix in `items`
            items, prefix_items = schema.get("additionalItems"), items
        result: JsonObject = {"type": "array"}
        prefix_schemas = [
            self._normalise(part, f"{path}.prefixItems[{index}]", depth + 1)
            for index, part in enumerate(prefix_items if isinstance(prefix_items, list) else ())
        ]
        items_schema = {} if items is False else self._normalise(items, f"{path}.items", depth + 1)
        max_items = int(schema.get("maxItems", max(self._limits.max_items, schema.get("minItems", 0))))
        if prefix_schemas and "prefixItems" in self._support.keywords:
            result["prefixItems"] = prefix_schemas
        elif prefix_schemas:
            self.record_dropped(path, "prefixItems", prefix_items, "each item may match any of these schemas")
            items_schema = build_union([*prefix_schemas, *([items_schema] if items_schema else [])])
        max_items = min(max_items, len(prefix_schemas)) if items is False else max_items
        result["items"] = items_schema or (False if "prefixItems" in result else NULL_SCHEMA)
        return {**result, **self._build_item_counts(schema, path, max_items)}

    def _build_item_counts(self, schema: JsonObject, path: str, max_items: int) -> JsonObject:
        return normalise_item_counts(schema, self._support, max_items, partial(self.record_dropped, path))

    def _build_object(self, schema: JsonObject, path: str, depth: int) -> JsonObject:
        """Return the normalised form of an object schema."""
        properties = schema.get("properties")
        members = {
            name: self._normalise(part, build_member_path(f"{path}.properties", name), depth + 1)
            for name, part in (properties.items() if isinstance(properties, dict) else ())
            if part is not False
        }
        required = [name for name in schema.get("required") or () if isinstance(name, str)]
        for name in (name for name in required if name not in members):
            members[name] = self._build_any_value(MAX_ANY_LEVELS)
        if self._support.closes_objects:
            return self._build_closed_object(schema, path, members, required)
        additional = self._build_other_keys(
            schema, path, depth, is_closed_by_default=bool(members) or isinstance(properties, dict)
        )
        named_count = len(members) if members.keys() <= set(required) else None
        key_counts = self._build_key_counts(schema, path, additional, named_count)
        properties_keyword = {"properties": members} if members or additional is False else {}
        required_names = [name for name in members if name in required]
        patterns = self._build_patterns(schema, path, depth)
        other_keywords = {
            "additionalProperties": additional,
            **({"patternProperties": patterns} if patterns else {}),
            **key_counts,
        }
        return {
            "type": "object",
            **properties_keyword,
            **({"required": required_names} if required_names else {}),
            **other_keywords,
        }

    def _build_closed_object(
        self, schema: JsonObject, path: str, members: JsonObject, required: list[str]
    ) -> JsonObject:
        """Return an object schema with only the keys of `members`, for a constraint that closes objects."""
        for keyword in ("patternProperties", "propertyNames", "dependentRequired", "minProperties", "maxProperties"):
            if keyword in schema:
                self.record_dropped(path, keyword, schema[keyword])
        if schema.get("additionalProperties", not members) not in (None, False):
            self.record_dropped(path, "additionalProperties", schema.get("additionalProperties", True), "no other keys")
        sent_members, required_names = members, [name for name in members if name in required]
        if self._support.requires_all_keys:
            sent_members = {name: part if name in required else make_nullable(part) for name, part in members.items()}
            required_names = list(sent_members)
        return {"type": "object", "properties": sent_members, "required": required_names, "additionalProperties": False}

    def _build_other_keys(self, schema: JsonObject, path: str, depth: int, *, is_closed_by_default: bool) -> Any:
        """Return the schema of keys that are not in `properties`, or False if there may be none.

        If the constraint does not enforce `patternProperties`, any key may have a value of one of their schemas.
        """
        additional = schema.get("additionalProperties")
        patterns = schema.get("patternProperties")
        if isinstance(patterns, dict) and patterns and "patternProperties" not in self._support.keywords:
            self.record_dropped(path, "patternProperties", patterns, "any key may have a value of one of these schemas")
            schemas = [
                self._normalise(part, build_member_path(f"{path}.patternProperties", name), depth + 1)
                for name, part in patterns.items()
            ]
            return build_union(schemas)
        if additional is False or (additional is None and (is_closed_by_default or patterns)):
            return False
        return self._normalise(additional, f"{path}.additionalProperties", depth + 1)

    def _build_patterns(self, schema: JsonObject, path: str, depth: int) -> JsonObject:
        patterns = schema.get("patternProperties")
        if not isinstance(patterns, dict) or "patternProperties" not in self._support.keywords:
            return {}
        return {
            name: self._normalise(part, build_member_path(f"{path}.patternProperties", name), depth + 1)
            for name, part in patterns.items()
        }

    def _build_key_counts(self, schema: JsonObject, path: str, additional: Any, named_count: int | None) -> JsonObject:
        """Return the enforced bounds of the number of keys, and record other keywords about keys as dropped.

        `additional` is the schema of other keys, or False for none. `named_count` is the number of named keys; it is
        None if one of them is optional, so that bounds are not enforced.
        """
        for keyword in ("propertyNames", "dependentRequired"):
            if keyword in schema:
                self.record_dropped(path, keyword, schema[keyword])
        if additional is not False and schema.get("unevaluatedProperties") is not None:
            self.record_dropped(path, "unevaluatedProperties", schema["unevaluatedProperties"])
        if "maxProperties" in self._support.keywords and named_count is not None:
            is_closed = additional is False
            return normalise_key_counts(
                schema,
                named_count,
                None if is_closed else self._limits.max_items,
                partial(self.record_dropped, path),
                has_other_keys=not is_closed or bool(schema.get("patternProperties")),
            )
        for keyword in ("minProperties", "maxProperties"):
            if keyword in schema:
                self.record_dropped(path, keyword, schema[keyword])
        return {}

    def _build_any_value(self, levels: int) -> JsonObject:
        """Return a `$ref` to the schema of any value of at most `levels` levels, without objects if they are closed."""
        name = f"any{levels}"
        if name not in self.definitions:
            self.definitions[name] = {}
            options = [self.build_text_schema(), {"type": "number"}, {"type": "boolean"}, NULL_SCHEMA]
            inner_schema = self._build_any_value(levels - 1) if levels > 1 else {}
            if inner_schema:
                options.append(
                    {"type": "array", "items": inner_schema, **self._build_item_counts({}, "", self._limits.max_items)}
                )
            if inner_schema and not self._support.closes_objects:
                options.append({"type": "object", "additionalProperties": inner_schema})
            self.definitions[name] = {"anyOf": options}
        return {"$ref": f"#/$defs/{name}"}
