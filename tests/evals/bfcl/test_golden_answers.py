from typing import Any

from toolbench.evals.bfcl.cases import BfclCase
from toolbench.evals.bfcl.golden_answers import build_golden_calls


def build_arguments(accepted: dict[str, list[Any]], required: list[str], **types: str) -> dict[str, Any]:
    properties = {name: {"type": kind} for name, kind in types.items()}
    function = {"name": "f", "parameters": {"type": "dict", "properties": properties, "required": required}}
    ((name, arguments),) = build_golden_calls(BfclCase("x", "simple_python", (), (function,), ({"f": accepted},)))
    assert name == "f"
    return arguments


def test_build_golden_calls_takes_first_accepted_value_of_right_type() -> None:
    assert build_arguments({"a": ["1", 2, 3]}, ["a"], a="integer") == {"a": 2}
    assert build_arguments({"a": [True, 1.5]}, ["a"], a="float") == {"a": 1.5}


def test_build_golden_calls_omits_optional_argument_without_value() -> None:
    assert build_arguments({"a": [""], "b": [None, ""], "c": ["", 5]}, [], a="string", b="string", c="integer") == {
        "c": 5
    }


def test_build_golden_calls_sets_required_argument_of_any_type() -> None:
    assert build_arguments({"a": [""], "b": [None]}, ["a"], a="string", b="string") == {"a": "", "b": None}


def test_build_golden_calls_takes_first_value_of_each_member() -> None:
    accepted: dict[str, list[Any]] = {"a": [{"x": [1, 2], "y": [""]}], "b": [[{"x": ["p"]}, {"x": ["q"]}]]}

    assert build_arguments(accepted, [], a="dict", b="array") == {"a": {"x": 1}, "b": [{"x": "p"}, {"x": "q"}]}
