"""Random schemas, with values that match them or miss them narrowly."""

from typing import Any

from hypothesis import strategies as st

CHARACTERS = st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from('"\\\n\t/ü')
TEXTS = st.text(CHARACTERS, max_size=6)
PATTERNS = {
    "^[a-c]{2,4}$": ("ab", "abcd", "a", "abx"),
    r"^\d+(-\d+)?$": ("1", "12-3", "-", "1-"),
    "^(foo|bar)+$": ("foo", "foobar", "fob", ""),
    r'^[^"a]\\?$': ("b", "\\", "b\\", '"'),
    "b": ("b", "abc", "", "x"),
    "^x|y$": ("xa", "ay", "ax", "ya"),
    r"^\S.\W$": ("ab!", "a\n!", " b!", "üb-"),
}
NAMES = st.sampled_from(["a", "b", "ab", "name", "ü", 'q"'])
ANY_VALUES = st.none() | st.booleans() | st.integers(-200, 200) | TEXTS
SMALL_INTEGERS = st.integers(-150, 150)


@st.composite
def text_schemas(draw: st.DrawFn) -> dict[str, Any]:
    if draw(st.booleans()):
        return {"type": "string", "pattern": draw(st.sampled_from(sorted(PATTERNS)))}
    min_length = draw(st.integers(0, 3))
    return {"type": "string", "minLength": min_length, "maxLength": min_length + draw(st.integers(0, 3))}


@st.composite
def integer_schemas(draw: st.DrawFn) -> dict[str, Any]:
    low, high = sorted((draw(SMALL_INTEGERS), draw(SMALL_INTEGERS)))
    bounds = {"minimum": low, "maximum": high}
    return {"type": "integer", **draw(st.fixed_dictionaries({}, optional={k: st.just(v) for k, v in bounds.items()}))}


def _array_schemas(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    sizes = st.tuples(st.integers(0, 2), st.integers(0, 2))
    plain = st.tuples(inner, sizes).map(
        lambda drawn: {"type": "array", "items": drawn[0], "minItems": drawn[1][0], "maxItems": sum(drawn[1])}
    )
    tuples = st.tuples(st.lists(inner, min_size=1, max_size=2), inner | st.just(False), st.integers(0, 2)).map(
        lambda drawn: {"type": "array", "prefixItems": drawn[0], "items": drawn[1], "minItems": drawn[2], "maxItems": 3}
    )
    return plain | tuples


@st.composite
def _object_schemas(draw: st.DrawFn, inner: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    properties = draw(st.dictionaries(NAMES, inner, max_size=3))
    required = [name for name in properties if draw(st.booleans())]
    others = draw(st.just(False) | st.just(False) | inner)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": others}


SCALAR_SCHEMAS = (
    text_schemas()
    | integer_schemas()
    | st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": "number"}])
    | st.lists(ANY_VALUES, min_size=1, max_size=3).map(lambda values: {"enum": values})
    | ANY_VALUES.map(lambda value: {"const": value})
)
SCHEMAS = st.recursive(
    SCALAR_SCHEMAS,
    lambda inner: (
        _array_schemas(inner)
        | _object_schemas(inner)
        | st.lists(inner, min_size=2, max_size=3).map(lambda a: {"anyOf": a})
    ),
    max_leaves=6,
)


@st.composite
def values(draw: st.DrawFn, schema: Any) -> Any:
    """Draw a value that matches the schema, or one that does not."""
    if not isinstance(schema, dict) or draw(st.integers(0, 11)) == 0:
        return draw(ANY_VALUES)
    if "anyOf" in schema:
        return draw(values(draw(st.sampled_from(schema["anyOf"]))))
    if "const" in schema or "enum" in schema:
        return draw(st.sampled_from(schema.get("enum", [schema.get("const")])))
    if "pattern" in schema:
        return draw(st.sampled_from(PATTERNS[schema["pattern"]]) | TEXTS)
    plain = {
        "string": TEXTS,
        "integer": SMALL_INTEGERS,
        "number": st.integers(-99, 99) | st.sampled_from([0.5, -1.25, 3e20, 1e-7]),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    if schema["type"] in plain:
        return draw(plain[schema["type"]])
    return draw(_item_lists(schema) if schema["type"] == "array" else _member_objects(schema))


@st.composite
def _item_lists(draw: st.DrawFn, schema: Any) -> list[Any]:
    prefix_schemas = schema.get("prefixItems", [])
    count = draw(st.integers(0, schema["maxItems"] + 1))
    return [
        draw(values(prefix_schemas[index] if index < len(prefix_schemas) else schema["items"]))
        for index in range(count)
    ]


@st.composite
def _member_objects(draw: st.DrawFn, schema: Any) -> dict[str, Any]:
    """Draw an object with keys in the order of the schema, as grammars require, and further keys after them."""
    members = {
        name: draw(values(part))
        for name, part in schema["properties"].items()
        if draw(st.integers(0, 5)) > (0 if name in schema["required"] else 3)
    }
    others = draw(st.lists(st.sampled_from(["z", "abc", "a", ""]), max_size=1))
    return {
        **members,
        **{name: draw(values(schema["additionalProperties"])) for name in others if name not in schema["properties"]},
    }
