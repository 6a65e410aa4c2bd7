"""BFCL's rules for single-turn Python calls, implemented independently of its AST checker.

An answer is right exactly if the checker accepts it; `bfcl/agreement.py` compares the two. The rules differ from JSON
equality: case, spaces and some punctuation of strings are ignored, an integer is accepted for a float, and members of
objects are compared one level deep. If the accepted values have another type than the parameter, they are names of a
variable: the argument must be equal to one of them.
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
_COMPARISON_ERRORS = (TypeError, KeyError, AttributeError, IndexError, ValueError, OverflowError)


@dataclass(frozen=True, slots=True)
class AnswerMistake:
    """A mistake in an answer.

    Attributes:
        message: The mistake as a phrase.
        argument: The name of the wrong argument; "" if the mistake concerns a whole call or the whole answer.
        call: The index of the wrong call in the answer to a parallel case; None in other categories, and if no single
            call is wrong.
    """

    message: str
    argument: str = ""
    call: int | None = None


def find_mistake(
    category: str, functions: Sequence[JsonObject], answers: Sequence[JsonObject], calls: Sequence[BfclCall]
) -> AnswerMistake | None:
    """Return the first mistake for which BFCL rejects an answer; None if BFCL accepts it.

    Args:
        category: The category of the case.
        functions: The functions of the case, as BFCL writes them.
        answers: For each expected call, {function name: {parameter name: accepted values}}.
        calls: The calls of the judged answer.
    """
    if len(calls) != len(answers):
        return AnswerMistake(f"{len(calls)} calls instead of {len(answers)}")
    if "parallel" in category:
        return _match_in_any_order(functions, answers, calls)
    (name,) = answers[0]
    function = _find_function(functions, name) if "multiple" in category else functions[0]
    return find_call_mistake(function, answers[0][name], calls[0])


def find_call_mistake(function: JsonObject | None, accepted: JsonObject, call: BfclCall) -> AnswerMistake | None:
    """Return the first mistake of one call; None if BFCL accepts it.

    Args:
        function: The expected function; None if the case does not have it.
        accepted: The accepted values of each parameter.
        call: The name and the arguments of the call that was made.
    """
    if function is None or call[0] != function["name"]:
        return AnswerMistake(
            f"{call[0]} was called instead of {function['name'] if function else 'a function of the case'}"
        )
    mistakes = iter_argument_mistakes(function, accepted, call[1])
    return next((AnswerMistake(message, name) for name, message in mistakes if message), None)


def iter_argument_mistakes(
    function: JsonObject, accepted: JsonObject, arguments: JsonObject
) -> Iterator[tuple[str, str]]:
    """Yield the name of each argument and of each missing parameter with its mistake, "" for a right argument.

    The order is: required parameters that are missing, the arguments, missing parameters for which OMITTED is not
    accepted. A missing parameter may be in both the first and the last part.
    """
    parameters = function["parameters"]["properties"]
    yield from ((name, "is missing") for name in function["parameters"]["required"] if name not in arguments)
    for name, value in arguments.items():
        if name not in parameters or name not in accepted:
            yield name, "is not expected"
        else:
            yield name, _find_value_mistake(parameters[name], value, accepted[name])
    for name, options in accepted.items():
        if name not in arguments and OMITTED not in options:
            yield name, "is missing"


def _match_in_any_order(
    functions: Sequence[JsonObject], answers: Sequence[JsonObject], calls: Sequence[BfclCall]
) -> AnswerMistake | None:
    """Return the mistake of the first expected call that no remaining call fits; None if all have one.

    Each expected call is matched with the first remaining call that fits it.
    """
    remaining_indexes = list(range(len(calls)))
    for answer in answers:
        (name,) = answer
        function = _find_function(functions, name)
        mistakes = {index: find_call_mistake(function, answer[name], calls[index]) for index in remaining_indexes}
        matched_index = next((index for index, mistake in mistakes.items() if mistake is None), None)
        if matched_index is None:
            return _find_first_mistake(name, mistakes, calls)
        remaining_indexes.remove(matched_index)
    return None


def _find_first_mistake(
    name: str, mistakes: Mapping[int, AnswerMistake | None], calls: Sequence[BfclCall]
) -> AnswerMistake:
    """Return the mistake of the first remaining call of the function `name`, or one that says that none is left."""
    for index, mistake in mistakes.items():
        if mistake and calls[index][0] == name:
            return AnswerMistake(mistake.message, mistake.argument, index)
    return AnswerMistake(f"no call of {name} is left that fits")


def _find_function(functions: Sequence[JsonObject], name: str) -> JsonObject | None:
    return next((function for function in functions if function["name"] == name), None)


def _find_value_mistake(parameter: JsonObject, value: Any, accepted: Sequence[Any]) -> str:
    try:
        is_right = _is_right(parameter, value, accepted)
    except _COMPARISON_ERRORS:
        return "cannot be compared with what is accepted"
    return "" if is_right else f"{value!r} is none of {list(accepted)!r}"[:300]


def _is_right(parameter: JsonObject, value: Any, accepted: Sequence[Any]) -> bool:
    type_name = parameter["type"]
    expected_type = _PYTHON_TYPES[type_name]
    item_type = _PYTHON_TYPES[parameter["items"]["type"]] if type_name in ("array", "tuple") else None
    if type_name == "float" and type(value) is int:
        value = float(value)
    is_right_type, is_variable = _check_type(value, accepted, expected_type, item_type)
    if not is_right_type:
        return False
    if is_variable:
        return value in accepted
    if expected_type is dict:
        return _is_accepted_object(value, accepted)
    if expected_type is list:
        is_accepted = _is_accepted_object_list if item_type is dict else _is_accepted_list
        return is_accepted(value, accepted)
    return _is_accepted_text(value, accepted) if expected_type is str else value in accepted


def _check_type(value: Any, accepted: Sequence[Any], expected_type: type, item_type: type | None) -> tuple[bool, bool]:
    """Return whether the types of a value and its items are right, and whether the accepted values name a variable.

    They name a variable if the first of them, other than OMITTED, has another type than the parameter. Then the value
    must equal one of them exactly.

    Args:
        value: The argument, or an item of it.
        accepted: The accepted values.
        expected_type: The type of the parameter.
        item_type: The type of the items of a list; None if the items are not checked.
    """
    accepted_type = next((type(option) for option in accepted if option != OMITTED), None)
    is_variable = accepted_type is not None and accepted_type is not expected_type
    if type(value) is expected_type:
        has_right_items = item_type is None or any(_has_right_items(value, option, item_type) for option in accepted)
        return has_right_items, is_variable
    return (True, True) if accepted_type is not None and type(value) is accepted_type else (False, is_variable)


def _has_right_items(value: Any, option: Any, item_type: type) -> bool:
    return not isinstance(option, list) or all(_check_type(item, option, item_type, None)[0] for item in value)


def _is_accepted_text(value: str, accepted: Sequence[Any]) -> bool:
    return _normalise(value) in [_normalise(option) for option in accepted if isinstance(option, str)]


def _is_accepted_list(value: list[Any], accepted: Sequence[Any]) -> bool:
    return [_normalise(item) for item in value] in [[_normalise(item) for item in option] for option in accepted]


def _is_accepted_object_list(value: list[Any], accepted: Sequence[Any]) -> bool:
    for option in accepted:
        if len(option) == len(value):
            pairs = zip(value, option, strict=True)
            if all(_is_accepted_object(item, [accepted_item]) for item, accepted_item in pairs):
                return True
    return False


def _is_accepted_object(value: JsonObject, accepted: Sequence[Any]) -> bool:
    return any(_has_accepted_members(value, option) for option in accepted if option != OMITTED)


def _has_accepted_members(value: JsonObject, option: Mapping[str, Sequence[Any]]) -> bool:
    for key, item in value.items():
        if key not in option or _normalise(item) not in [_normalise(accepted_item) for accepted_item in option[key]]:
            return False
    return all(key in value or OMITTED in options for key, options in option.items())


def _normalise(value: Any) -> Any:
    """Return a string in the form in which BFCL compares it; any other value unchanged."""
    return _IGNORED_CHARACTERS.sub("", value).lower().replace("'", '"') if type(value) is str else value
