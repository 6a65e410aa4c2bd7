"""Golden answers: one right answer to a case, built from the values that BFCL accepts."""

from collections.abc import Iterator
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.evals.bfcl.cases import BfclCase
from toolbench.evals.bfcl.schemas import build_json_schema

OMITTED = ""  # an accepted value that says that the parameter may be omitted
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}

BfclCall = tuple[str, JsonObject]  # name of the function, arguments


def build_golden_calls(case: BfclCase) -> tuple[BfclCall, ...]:
    """Return the name and the arguments of every expected call, in BFCL's order.

    Each parameter gets the first accepted value of its type. Without such a value, it is omitted if it may be, and
    otherwise gets the first accepted value. The checker rejects the golden answers of a few cases, in which a
    parameter has no accepted value of its type.
    """
    functions = {function["name"]: function for function in case.functions}
    return tuple(
        (name, build_golden_arguments(functions[name], accepted))
        for answer in case.answers
        for name, accepted in answer.items()
    )


def build_golden_arguments(function: JsonObject, accepted: JsonObject) -> JsonObject:
    """Return right arguments of one call, chosen as in `build_golden_calls`."""
    return dict(_iter_arguments(accepted, build_json_schema(function["parameters"])))


def _iter_arguments(accepted: JsonObject, schema: JsonObject) -> Iterator[tuple[str, Any]]:
    for key, options in accepted.items():
        is_needed = key in schema.get("required", ()) or OMITTED not in options
        typed_options = [
            option for option in options if option != OMITTED and _has_type(option, schema["properties"].get(key))
        ]
        if typed_options or is_needed:
            yield key, _build_value(typed_options[0] if typed_options else _find_first(options))


def _has_type(option: Any, schema: JsonObject | None) -> bool:
    types = _PYTHON_TYPES.get(str(schema.get("type")), ()) if schema else ()
    return isinstance(option, types) and (bool in types or not isinstance(option, bool))


def _build_value(option: Any) -> Any:
    """Return the value that an accepted value stands for.

    An accepted object, also one in a list, has a list of accepted values for each member; the first of them is taken.
    """
    if isinstance(option, list):
        return [_build_members(item) if isinstance(item, dict) else item for item in option]
    return _build_members(option) if isinstance(option, dict) else option


def _build_members(accepted: JsonObject) -> JsonObject:
    return {key: _find_first(options) for key, options in accepted.items() if options != [OMITTED]}


def _find_first(options: list[Any]) -> Any:
    """Return the first accepted value other than OMITTED; OMITTED if there is none."""
    return next((option for option in options if option != OMITTED), OMITTED)
