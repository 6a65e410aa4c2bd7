from toolbench.evals.bfcl.schemas import build_json_schema


def test_bfcl_types_become_json_schema_and_parameter_type_stays() -> None:
    described = {
        "type": "dict",
        "required": ["type"],
        "properties": {
            "type": {"type": "float", "description": "A dict", "default": "float"},
            "at": {"type": "tuple", "items": {"type": "dict", "properties": {"x": {"type": "any"}}}},
        },
    }

    assert build_json_schema(described) == {
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {"type": "number", "description": "A dict", "default": "float"},
            "at": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}},
        },
    }
