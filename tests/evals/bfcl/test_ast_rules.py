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


def wrong(**given: Any) -> str | None:
    found = find_mistake("simple_python", [FUNCTION], [{"book": ACCEPTED}], [("book", {"city": "New York", **given})])
    return found.argument if found else None


@pytest.mark.parametrize(
    "given", [{"city": "new-york"}, {"nights": 2}, {"price": 10}, {"tags": ["A.b"]}, {"guest": {"name": "anne"}}, {}]
)
def test_what_bfcl_accepts_is_right(given: dict[str, Any]) -> None:
    assert wrong(**given) is None


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
    ],
)
def test_what_bfcl_refuses_is_named_by_its_argument(given: dict[str, Any], argument: str) -> None:
    assert wrong(**given) == argument


def test_parallel_calls_may_come_in_any_order_and_none_may_be_missing() -> None:
    answers = [{"book": {"city": ["Oslo"]}}, {"book": {"city": ["Rome"]}}]
    calls = [("book", {"city": "Rome"}), ("book", {"city": "Oslo"})]
    assert find_mistake("parallel", [FUNCTION], answers, calls) is None
    assert find_mistake("parallel", [FUNCTION], answers, calls[:1]) is not None
    assert find_mistake("parallel", [FUNCTION], answers, [calls[0], calls[0]]) is not None
