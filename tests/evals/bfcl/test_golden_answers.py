from typing import Any

from toolbench.evals.bfcl.cases import BfclCase
from toolbench.evals.bfcl.golden_answers import build_golden_calls


def golden(accepted: dict[str, list[Any]], required: list[str], **types: str) -> dict[str, Any]:
    properties = {name: {"type": kind} for name, kind in types.items()}
    function = {"name": "f", "parameters": {"type": "dict", "properties": properties, "required": required}}
    ((name, arguments),) = build_golden_calls(BfclCase("x", "simple_python", (), (function,), ({"f": accepted},)))
    assert name == "f"
    return arguments


def test_the_first_accepted_value_of_the_right_type_is_taken() -> None:
    assert golden({"a": ["1", 2, 3]}, ["a"], a="integer") == {"a": 2}
    assert golden({"a": [True, 1.5]}, ["a"], a="float") == {"a": 1.5}


def test_what_may_be_left_out_and_fits_nothing_is_left_out() -> None:
    assert golden({"a": [""], "b": [None, ""], "c": ["", 5]}, [], a="string", b="string", c="integer") == {"c": 5}


def test_what_is_needed_is_given_whatever_it_is() -> None:
    assert golden({"a": [""], "b": [None]}, ["a"], a="string", b="string") == {"a": "", "b": None}


def test_accepted_objects_list_the_values_of_their_members() -> None:
    accepted: dict[str, list[Any]] = {"a": [{"x": [1, 2], "y": [""]}], "b": [[{"x": ["p"]}, {"x": ["q"]}]]}

    assert golden(accepted, [], a="dict", b="array") == {"a": {"x": 1}, "b": [{"x": "p"}, {"x": "q"}]}
