from toolbench.evals.bfcl.schemas import build_json_schema


def test_build_json_schema_converts_types_but_not_a_parameter_name() -> None:
    description = {
        "type": "dict",
        "required": ["type"],
        "properties": {
            "type": {"type": "float", "description": "A dict", "default": "float"},
            "at": {"type": "tuple", "items": {"type": "dict", "properties": {"x": {"type": "any"}}}},
        },
    }

    assert build_json_schema(description) == {
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {"type": "number", "description": "A dict", "default": "float"},
            "at": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}},
        },
    }
