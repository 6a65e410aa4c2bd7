"""Validation of arguments by the tool's JSON Schema, with a JSON path for each violation."""

import json
from collections.abc import Iterator
from itertools import islice

import jsonschema_rs

from toolbench.engine.errors import PlanError
from toolbench.engine.identity_key import IdentityKey
from toolbench.engine.json_paths import build_member_path, render_json_path
from toolbench.engine.sized_cache import SizedCache, estimate_bytes
from toolbench.engine.strict_json import write_json
from toolbench.engine.tools.applied_schemas import ApplicationCounter, can_multiply, count_applied_schemas
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import JsonObject, SchemaError

MAX_ERRORS = 20
MAX_APPLIED_SCHEMAS = 10_000  # to one value; the time of a validation grows with their number
# To arguments and all values inside of them, as ApplicationCounter counts. With so many schemas, each of these takes
# about a second: whether arguments are valid, and a list of their errors.
MAX_CHECKED_SCHEMAS, MAX_LISTED_SCHEMAS = 1_000_000, 10_000
_VALIDATOR_SIZE = 6  # memory of a validator as a multiple of the estimate for its schema; 2.6 to 5.7 were measured
_KIND_BY_KEYWORD = {
    "required": "missing",
    "type": "type",
    "enum": "enum",
    "const": "enum",
    "minimum": "range",
    "maximum": "range",
    "exclusiveMinimum": "range",
    "exclusiveMaximum": "range",
    "minLength": "range",
    "maxLength": "range",
    "minItems": "range",
    "maxItems": "range",
    "minProperties": "range",
    "maxProperties": "range",
    "multipleOf": "range",
    "additionalProperties": "extra",
    "unevaluatedProperties": "extra",
    "additionalItems": "extra",
    "unevaluatedItems": "extra",
}


def check_schema(tool: ToolDefinition) -> None:
    """Check that the tool's parameters are a JSON Schema that can be used without a network.

    Raises:
        PlanError: the parameters are no valid JSON Schema, refer to another document, or apply more than
            MAX_APPLIED_SCHEMAS schemas to one value.
    """
    try:
        _get_validator(tool)
    except (ValueError, TypeError, RecursionError) as error:
        location = (
            f"{render_json_path(error.instance_path)}: " if isinstance(error, jsonschema_rs.ValidationError) else ""
        )
        message = f"{location}{_get_first_line(error)}"
        raise PlanError(f"the parameters of tool {tool.name} are no usable JSON Schema: {message}") from None


def list_schema_errors(tool: ToolDefinition, arguments: JsonObject) -> tuple[SchemaError, ...]:
    """Return the first MAX_ERRORS violations in the order of the validator; () if there are none.

    Arguments that cannot be checked get one error of the kind `other`.

    Raises:
        ValueError, TypeError, RecursionError: the tool's parameters are no usable JSON Schema; `check_schema` raises
            PlanError for them.
    """
    validator, counter = _get_validator(tool)
    applied = counter.count(arguments, MAX_CHECKED_SCHEMAS) if counter else 0
    if applied >= MAX_CHECKED_SCHEMAS:
        return (_build_excess_error("the arguments cannot be checked", MAX_CHECKED_SCHEMAS),)
    try:
        if validator.is_valid(arguments):
            return ()
        if applied > MAX_LISTED_SCHEMAS:
            return (_build_excess_error("the arguments are not valid", MAX_LISTED_SCHEMAS),)
        schema_errors = (
            schema_error for error in validator.iter_errors(arguments) for schema_error in _build_schema_errors(error)
        )
        return tuple(islice(schema_errors, MAX_ERRORS))
    except ValueError as error:
        return (SchemaError("$", "other", f"the arguments cannot be checked: {_get_first_line(error)}"),)


# A validator, and the counter of the schemas that it applies if their number can multiply with the depth of arguments.
_Validator = tuple[jsonschema_rs.Validator, ApplicationCounter | None]
_validators: SizedCache[str, _Validator] = SizedCache(max_entries=512)
_validators_by_tool: SizedCache[IdentityKey[ToolDefinition], _Validator] = SizedCache(max_entries=512)


def _get_validator(tool: ToolDefinition) -> _Validator:
    def compile_schema() -> tuple[_Validator, int]:
        schema, schema_bytes = write_json(dict(tool.parameters)), estimate_bytes(tool.parameters)
        validator_bytes = _VALIDATOR_SIZE * schema_bytes
        validator = _validators.get(schema, lambda: (_compile_validator(schema), len(schema) + validator_bytes))
        return validator, schema_bytes + validator_bytes

    return _validators_by_tool.get(IdentityKey(tool), compile_schema)


def _compile_validator(schema: str) -> _Validator:
    """Compile a schema, which is given as JSON text.

    Raises:
        ValueError: the schema is invalid, or a validation by it could take minutes.
    """
    root = json.loads(schema)
    if count_applied_schemas(root, MAX_APPLIED_SCHEMAS + 1) > MAX_APPLIED_SCHEMAS:
        raise ValueError(f"unions and references apply more than {MAX_APPLIED_SCHEMAS:,} schemas to one value")
    validator = jsonschema_rs.validator_for(schema, mask="the value", offline=True)
    return validator, ApplicationCounter(root) if can_multiply(root, MAX_LISTED_SCHEMAS) else None


def _build_excess_error(problem: str, limit: int) -> SchemaError:
    return SchemaError("$", "other", f"{problem}; their schema applies more than {limit:,} schemas to them")


def _build_schema_errors(error: jsonschema_rs.ValidationError) -> Iterator[SchemaError]:
    """Yield one error for each property that `additionalProperties` forbids, or one error for any other violation."""
    path = render_json_path(error.instance_path)
    violation_kind = _KIND_BY_KEYWORD.get(error.kind.name, "other")
    if violation_kind == "missing":
        yield SchemaError(build_member_path(path, error.kind.value), violation_kind, "is required")
    elif error.kind.name == "additionalProperties":
        yield from (
            SchemaError(build_member_path(path, name), violation_kind, "is not a known property")
            for name in error.kind.value
        )
    else:
        yield SchemaError(path, violation_kind, error.message)


def _get_first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:200]
