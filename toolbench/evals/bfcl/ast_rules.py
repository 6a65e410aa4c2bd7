"""BFCL's rules for single-turn Python calls, implemented independently: right is exactly what its AST checker accepts.

They differ from JSON equality on purpose, as BFCL's do: case, spaces and some punctuation of texts are ignored, a whole
number may stand for a float, members of objects are compared one level deep, and an accepted value of a type other than
the parameter's stands for a variable. `bfcl/agreement.py` compares them with the checker.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.evals.bfcl.golden_answers import OMITTED, BfclCall

_PYTHON_TYPES: Mapping[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
}
_IGNORED_CHARACTERS = re.compile(r"[ ,./\-_*^]")
_UNREADABLE_ERRORS = (TypeError, KeyError, AttributeError, IndexError, ValueError)


@dataclass(frozen=True, slots=True)
class AnswerMistake:
    """A mistake in an answer.

    Attributes:
        argument: The argument's name; "" if the mistake concerns the whole call.
        call: The index of the call among those made; None if it concerns no single call.
    """

    message: str
    argument: str = ""
    call: int | None = None


def find_mistake(
    category: str, functions: Sequence[JsonObject], answers: Sequence[JsonObject], calls: Sequence[BfclCall]
) -> AnswerMistake | None:
    """Return the first mistake for which BFCL would reject the answer; None if it would accept it."""
    if len(calls) != len(answers):
        return AnswerMistake(f"{len(calls)} calls instead of {len(answers)}")
    if "parallel" in category:
        return _match_in_any_order(functions, answers, calls)
    (name,) = answers[0]
    function = _find_function(functions, name) if "multiple" in category else functions[0]
    return find_call_mistake(function, answers[0][name], calls[0])


def find_call_mistake(function: JsonObject | None, accepted: JsonObject, call: BfclCall) -> AnswerMistake | None:
    """Return the first mistake of one call; None if the values are accepted for each parameter."""
    if function is None or call[0] != function["name"]:
        return AnswerMistake(
            f"{call[0]} was called instead of {function['name'] if function else 'a function of the case'}"
        )
    found = (
        AnswerMistake(message, name) for name, message in iter_argument_mistakes(function, accepted, call[1]) if message
    )
    return next(found, None)


def iter_argument_mistakes(function: JsonObject, accepted: JsonObject, given: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield each parameter with its mistake, "" for none.

    The order is: required ones that are missing, those given, those that may not be omitted.
    """
    described = function["parameters"]["properties"]
    yield from ((name, "is missing") for name in function["parameters"]["required"] if name not in given)
    for name, value in given.items():
        if name not in described or name not in accepted:
            yield name, "was not asked for"
        else:
            yield name, _find_value_mistake(described[name], value, accepted[name])
    for name, options in accepted.items():
        if name not in given and OMITTED not in options:
            yield name, "is missing"


def _match_in_any_order(
    functions: Sequence[JsonObject], answers: Sequence[JsonObject], calls: Sequence[BfclCall]
) -> AnswerMistake | None:
    """Match each expected call with the first remaining call that fits it."""
    left = list(range(len(calls)))
    for answer in answers:
        (name,) = answer
        tried = {
            place: find_call_mistake(_find_function(functions, name), answer[name], calls[place]) for place in left
        }
        fits = next((place for place, wrong in tried.items() if wrong is None), None)
        if fits is None:
            return _find_nearest_mistake(name, tried, calls)
        left.remove(fits)
    return None


def _find_nearest_mistake(
    name: str, tried: Mapping[int, AnswerMistake | None], calls: Sequence[BfclCall]
) -> AnswerMistake:
    same = ((place, wrong) for place, wrong in tried.items() if wrong and calls[place][0] == name)
    place, wrong = next(same, (None, None))
    if wrong is None:
        return AnswerMistake(f"no call of {name} is left that fits")
    return AnswerMistake(wrong.message, wrong.argument, place)


def _find_function(functions: Sequence[JsonObject], name: str) -> JsonObject | None:
    return next((function for function in functions if function["name"] == name), None)


def _find_value_mistake(described: JsonObject, value: Any, accepted: Sequence[Any]) -> str:
    try:
        right = _is_right(described, value, accepted)
    except _UNREADABLE_ERRORS:
        return "cannot be compared with what is accepted"
    return "" if right else f"{value!r} is none of {list(accepted)!r}"[:300]


def _is_right(described: JsonObject, value: Any, accepted: Sequence[Any]) -> bool:
    kind = described["type"]
    expected_type = _PYTHON_TYPES[kind]
    inner = _PYTHON_TYPES[described["items"]["type"]] if kind in ("array", "tuple") else None
    if kind == "float" and type(value) is int:
        value = float(value)
    fits, variable = _is_right_type(value, accepted, expected_type, inner)
    if not fits:
        return False
    if variable:
        return value in accepted
    if expected_type is dict:
        return _is_object(value, accepted)
    if expected_type is list:
        return _is_list_of_objects(value, accepted) if inner is dict else _is_list(value, accepted)
    return _is_text(value, accepted) if expected_type is str else value in accepted


def _is_right_type(value: Any, accepted: Sequence[Any], expected_type: type, inner: type | None) -> tuple[bool, bool]:
    """Return whether the type is right, and whether the value stands for a variable.

    It does if its type is that of the accepted values and not the parameter's.
    """
    shown = next((type(option) for option in accepted if option != OMITTED), None)
    variable = shown is not None and shown is not expected_type
    if type(value) is expected_type:
        if inner is None or any(_has_right_items(value, option, inner) for option in accepted):
            return True, variable
        return False, variable
    return (True, True) if shown is not None and type(value) is shown else (False, variable)


def _has_right_items(value: Any, option: Any, inner: type) -> bool:
    return not isinstance(option, list) or all(_is_right_type(item, option, inner, None)[0] for item in value)


def _is_text(value: str, accepted: Sequence[Any]) -> bool:
    return _normalise(value) in [_normalise(option) for option in accepted if isinstance(option, str)]


def _is_list(value: list[Any], accepted: Sequence[Any]) -> bool:
    return [_normalise(item) for item in value] in [[_normalise(item) for item in option] for option in accepted]


def _is_list_of_objects(value: list[Any], accepted: Sequence[Any]) -> bool:
    for option in accepted:
        if len(option) == len(value):
            pairs = zip(value, option, strict=True)
            if all(_is_object(item, [expected_type]) for item, expected_type in pairs):
                return True
    return False


def _is_object(value: JsonObject, accepted: Sequence[Any]) -> bool:
    return any(_has_members(value, option) for option in accepted if option != OMITTED)


def _has_members(value: JsonObject, option: Mapping[str, Sequence[Any]]) -> bool:
    for key, item in value.items():
        if key not in option or _normalise(item) not in [_normalise(value) for value in option[key]]:
            return False
    return all(key in value or OMITTED in options for key, options in option.items())


def _normalise(value: Any) -> Any:
    """Return a text as BFCL compares it; any other value unchanged."""
    return _IGNORED_CHARACTERS.sub("", value).lower().replace("'", '"') if type(value) is str else value
