"""Golden answers: one right answer for a case, made of the values that BFCL accepts."""

from collections.abc import Iterator
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.evals.bfcl.cases import BfclCase
from toolbench.evals.bfcl.schemas import build_json_schema

OMITTED = ""  # as an accepted value: the parameter may be omitted
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}

BfclCall = tuple[str, JsonObject]


def build_golden_calls(case: BfclCase) -> tuple[BfclCall, ...]:
    """Return name and arguments of every call, in BFCL's order.

    Each parameter gets the first accepted value of the type that its function names; a parameter that may be omitted
    and has no such value is omitted. A few cases accept nothing that their own function takes; their golden answer is
    wrong, and the checker rejects it.
    """
    functions = {function["name"]: function for function in case.functions}
    return tuple(
        (name, build_golden_arguments(functions[name], accepted))
        for answer in case.answers
        for name, accepted in answer.items()
    )


def build_golden_arguments(function: JsonObject, accepted: JsonObject) -> JsonObject:
    """Return right arguments of a call, as in `build_golden_calls`."""
    return dict(_iter_arguments(accepted, build_json_schema(function["parameters"])))


def _iter_arguments(accepted: JsonObject, schema: JsonObject) -> Iterator[tuple[str, Any]]:
    for key, options in accepted.items():
        needed = key in schema.get("required", ()) or OMITTED not in options
        fitting = [
            option for option in options if option != OMITTED and _has_type(option, schema["properties"].get(key))
        ]
        if fitting or needed:
            yield key, _build_value(fitting[0] if fitting else _find_first(options))


def _has_type(option: Any, schema: JsonObject | None) -> bool:
    kinds = _PYTHON_TYPES.get(str(schema.get("type")), ()) if schema else ()
    return isinstance(option, kinds) and (bool in kinds or not isinstance(option, bool))


def _build_value(option: Any) -> Any:
    """Return a value for an accepted one.

    An accepted object lists the accepted values of its members, one level deep; so do objects in a list.
    """
    if isinstance(option, list):
        return [_build_members(item) if isinstance(item, dict) else item for item in option]
    return _build_members(option) if isinstance(option, dict) else option


def _build_members(accepted: JsonObject) -> JsonObject:
    return {key: _find_first(options) for key, options in accepted.items() if options != [OMITTED]}


def _find_first(options: list[Any]) -> Any:
    return next((option for option in options if option != OMITTED), OMITTED)
