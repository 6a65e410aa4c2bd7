import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolbench.engine.loop.ids import list_call_ids, repair_ids
from toolbench.engine.types import Message


@pytest.mark.parametrize(
    ("given_ids", "expected"),
    [
        (["a", "b"], ("a", "b")),
        (["", " "], ("tc_1", "tc_2")),
        (["a", "a", "a"], ("a", "a__2", "a__3")),
        ([" a ", "a"], ("a", "a__2")),
        (["a", "", "a"], ("a", "tc_2", "a__2")),
        (["a", "a", "a__2"], ("a", "a__2", "a__2__2")),
        (["tc_2", ""], ("tc_2", "tc_2__2")),
        ([], ()),
    ],
)
def test_repair_ids_fills_blank_and_numbers_repeated_ids(given_ids: list[str], expected: tuple[str, ...]) -> None:
    assert repair_ids(given_ids) == expected


def test_repair_ids_avoids_ids_of_the_conversation() -> None:
    assert repair_ids(["call_1", ""], {"call_1", "call_1__2", "tc_2"}) == ("call_1__3", "tc_2__2")


@settings(deadline=None, database=None)
@given(st.lists(st.sampled_from(["", "a", "a__2", "a__2__2", "tc_1", "tc_3"]), max_size=12))
def test_repair_ids_returns_distinct_ids_and_is_idempotent(given_ids: list[str]) -> None:
    repaired_ids = repair_ids(given_ids)
    assert len(set(repaired_ids)) == len(given_ids)
    assert repair_ids(repaired_ids) == repaired_ids


def test_repair_ids_numbers_ten_thousand_repeats() -> None:
    assert repair_ids(["a"] * 10_000)[-1] == "a__10000"


def test_list_call_ids_returns_text_ids_of_tool_calls() -> None:
    history: list[Message] = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "a"}, {"id": None}, {}, {"id": 7}, {"id": "b"}]},
        {"role": "tool", "tool_call_id": "a", "content": "{}"},
        {"role": "assistant", "content": "", "function_call": {"name": "f"}, "id": "c"},
    ]
    assert list(list_call_ids(history)) == ["a", "b"]
