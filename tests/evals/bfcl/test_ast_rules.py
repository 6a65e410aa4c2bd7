from typing import Any

import pytest

from toolbench.evals.bfcl.ast_rules import find_mistake

FUNCTION = {
    "name": "book",
    "parameters": {
        "type": "dict",
        "properties": {
            "city": {"type": "string"},
            "nights": {"type": "integer"},
            "price": {"type": "float"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "guest": {"type": "dict"},
        },
        "required": ["city"],
    },
}
ACCEPTED = {
    "city": ["New York"],
    "nights": [2, ""],
    "price": [10.0, ""],
    "tags": [["a b"], ""],
    "guest": [{"name": ["Ann", "Anne"]}, ""],
}


def find_wrong_argument(**given: Any) -> str | None:
    found = find_mistake("simple_python", [FUNCTION], [{"book": ACCEPTED}], [("book", {"city": "New York", **given})])
    return found.argument if found else None


@pytest.mark.parametrize(
    "given", [{"city": "new-york"}, {"nights": 2}, {"price": 10}, {"tags": ["A.b"]}, {"guest": {"name": "anne"}}, {}]
)
def test_find_mistake_accepts_what_bfcl_accepts(given: dict[str, Any]) -> None:
    assert find_wrong_argument(**given) is None


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"city": "Boston"}, "city"),
        ({"nights": 2.0}, "nights"),
        ({"nights": True}, "nights"),
        ({"tags": ["a", "b"]}, "tags"),
        ({"guest": {"name": "Bob"}}, "guest"),
        ({"guest": []}, "guest"),
        ({"floor": 3}, "floor"),
        ({"price": 10**400}, "price"),
    ],
)
def test_find_mistake_names_the_argument_that_bfcl_refuses(given: dict[str, Any], argument: str) -> None:
    assert find_wrong_argument(**given) == argument


def test_find_mistake_parallel_needs_every_call_in_any_order() -> None:
    answers = [{"book": {"city": ["Oslo"]}}, {"book": {"city": ["Rome"]}}]
    calls = [("book", {"city": "Rome"}), ("book", {"city": "Oslo"})]
    assert find_mistake("parallel", [FUNCTION], answers, calls) is None
    assert find_mistake("parallel", [FUNCTION], answers, calls[:1]) is not None
    assert find_mistake("parallel", [FUNCTION], answers, [calls[0], calls[0]]) is not None
