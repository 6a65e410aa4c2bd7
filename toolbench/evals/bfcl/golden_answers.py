"""One right answer for a case, made of the values that BFCL accepts."""

from collections.abc import Iterator
from typing import Any

from toolbench.engine.messages import JsonObject
from toolbench.evals.bfcl.cases import Case
from toolbench.evals.bfcl.schemas import json_schema

LEFT_OUT = ""  # among the accepted values: the parameter may be left out
_PYTHON: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}

Call = tuple[str, JsonObject]


def golden_calls(case: Case) -> tuple[Call, ...]:
    """Name and arguments of every call, in BFCL's order: of each parameter the first accepted value that is of the
    type its function names. What may be left out and has no such value is left out. A few cases accept nothing that
    their own function takes; their answer is wrong, and the checker says so."""
    described = {function["name"]: json_schema(function["parameters"]) for function in case.functions}
    return tuple(
        (name, dict(_arguments(accepted, described[name])))
        for answer in case.answers
        for name, accepted in answer.items()
    )


def _arguments(accepted: JsonObject, schema: JsonObject) -> Iterator[tuple[str, Any]]:
    for key, options in accepted.items():
        needed = key in schema.get("required", ()) or LEFT_OUT not in options
        fitting = [option for option in options if option != LEFT_OUT and _fits(option, schema["properties"].get(key))]
        if fitting or needed:
            yield key, _value(fitting[0] if fitting else _first(options))


def _fits(option: Any, schema: JsonObject | None) -> bool:
    kinds = _PYTHON.get(str(schema.get("type")), ()) if schema else ()
    return isinstance(option, kinds) and (bool in kinds or not isinstance(option, bool))


def _value(option: Any) -> Any:
    """An accepted object lists the accepted values of its members, one level deep; so do objects in an accepted
    list."""
    if isinstance(option, list):
        return [_members(item) if isinstance(item, dict) else item for item in option]
    return _members(option) if isinstance(option, dict) else option


def _members(accepted: JsonObject) -> JsonObject:
    return {key: _first(options) for key, options in accepted.items() if options != [LEFT_OUT]}


def _first(options: list[Any]) -> Any:
    return next((option for option in options if option != LEFT_OUT), LEFT_OUT)
