import copy
import re
from typing import Any

import pytest

from toolbench.engine.transforms import TransformContext, apply_message, list_names
from toolbench.engine.types import JsonObject
from toolbench.engine.wire_formats.parse_answer import INTERRUPTED_RESULT

CALL = {"id": "c1", "type": "function", "function": {"name": "state_get", "arguments": "{}"}}

EMPTY = "assistant_tool_calls_content_empty_if_null"
NULL = "assistant_tool_calls_content_null_if_blank"
REASONING = "assistant_tool_calls_reasoning_content_empty_if_missing"
SIGNATURE = "assistant_tool_calls_signature_skip_validator_if_missing"


def build_calling_message(**more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": [CALL], **more}


@pytest.mark.parametrize("content", ["", "  \n"])
def test_apply_message_with_blank_content_and_calls_sends_null(content: str) -> None:
    messages, changes = apply_message([build_calling_message(content=content)], [NULL])
    assert messages[0]["content"] is None
    assert [(c.kind, c.name, c.path, c.after) for c in changes] == [("message", NULL, "$[0].content", "null")]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": "", "tool_calls": []},
        {"role": "user", "content": "", "tool_calls": [CALL]},
        build_calling_message(content="I look it up."),
        build_calling_message(content=None),
    ],
)
def test_apply_message_without_blank_content_or_calls_keeps_content(message: dict[str, Any]) -> None:
    assert apply_message([message], [NULL]) == ([message], ())


def test_apply_message_with_null_content_and_calls_sends_empty_text() -> None:
    missing = {"role": "assistant", "tool_calls": [CALL]}
    kept = [build_calling_message(content=" "), {"role": "assistant", "content": None}]
    messages, changes = apply_message([build_calling_message(content=None), missing, *kept], [EMPTY])
    assert messages == [build_calling_message(), {**missing, "content": ""}, *kept]
    assert [(c.name, c.path) for c in changes] == [(EMPTY, "$[0].content"), (EMPTY, "$[1].content")]


def test_apply_message_without_reasoning_content_adds_empty_text() -> None:
    messages, changes = apply_message(
        [
            build_calling_message(),
            build_calling_message(reasoning_content="hm"),
            build_calling_message(reasoning_content=None),
        ],
        [REASONING],
    )
    assert [m["reasoning_content"] for m in messages] == ["", "hm", None]
    assert [(c.path, c.before, c.after) for c in changes] == [("$[0].reasoning_content", "", '""')]


def test_apply_message_signs_only_calls_without_signature() -> None:
    signed = {**CALL, "signature": "own"}
    messages, changes = apply_message([build_calling_message(tool_calls=[CALL, signed])], [SIGNATURE])
    assert [c["signature"] for c in messages[0]["tool_calls"]] == ["skip_thought_signature_validator", "own"]
    assert [c.path for c in changes] == ["$[0].tool_calls[0].signature"]


def test_apply_message_leaves_its_argument_unchanged() -> None:
    history = [{"role": "user", "content": "hi"}, build_calling_message()]
    before = copy.deepcopy(history)
    messages, _ = apply_message(history, list_names("message"))
    assert history == before
    assert messages != before


def test_apply_message_ignores_entries_that_are_no_calls() -> None:
    odd = build_calling_message(tool_calls=["x", None])
    assert apply_message([odd], [SIGNATURE]) == ([odd], ())


def test_nine_character_ids_are_equal_in_calls_and_results() -> None:
    def apply_to_id(call_id: str) -> tuple[object, object]:
        build_calling_message = {"role": "assistant", "tool_calls": [{"id": call_id, "function": {"name": "f"}}]}
        result = {"role": "tool", "tool_call_id": call_id, "content": "{}"}
        changed, _ = apply_message([build_calling_message, result], ["tool_call_ids_nine_characters"])
        return changed[0]["tool_calls"][0]["id"], changed[1]["tool_call_id"]

    assert apply_to_id("aB3456789") == ("aB3456789", "aB3456789")
    first, second = apply_to_id("functions.f:0"), apply_to_id("functions.f:1")
    assert first[0] == first[1] != second[0]
    assert re.fullmatch(r"[a-zA-Z0-9]{9}", str(first[0]))


def test_midturn_system_message_moves_into_next_user_message() -> None:
    start = {"role": "system", "content": "Be brief."}
    middle = {"role": "system", "content": "Now in French."}
    hello, again = {"role": "user", "content": "Hello"}, {"role": "user", "content": "Again"}

    folded, changes = apply_message([start, hello, middle, again], ["midturn_system_to_user"])

    assert folded == [start, hello, {"role": "user", "content": "Now in French.\n\nAgain"}]
    assert changes
    assert apply_message([start, hello, middle], ["midturn_system_to_user"])[0] == [
        start,
        hello,
        {"role": "user", "content": "Now in French."},
    ]
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    with_image = apply_message([hello, middle, {"role": "user", "content": [image]}], ["midturn_system_to_user"])[0]
    assert with_image[1]["content"] == [{"type": "text", "text": "Now in French."}, image]


def test_midturn_system_transform_keeps_first_system_message() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]

    assert apply_message(messages, ["midturn_system_to_user"]) == (messages, ())


@pytest.mark.parametrize(
    ("pattern", "kept_id", "sent_pattern"),
    [
        ("[a-zA-Z0-9]{9}", "abcDEF123", r"[a-f0-9]{9}"),
        (r"functions\..+:\d+", "functions.f:4", r"functions\.f:0"),
        ("call_[a-z0-9]+", "call_a", r"call_[a-f0-9]{24}"),
        ("toolu_[a-z0-9]{24}", "toolu_" + "a" * 24, r"toolu_[a-f0-9]{24}"),
    ],
)
def test_ids_that_break_pattern_change_in_call_and_result(pattern: str, kept_id: str, sent_pattern: str) -> None:
    messages: list[JsonObject] = [
        {"role": "assistant", "tool_calls": [{"id": kept_id, "function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": kept_id},
        {"role": "assistant", "tool_calls": [{"id": "?", "function": {"name": "f"}, "extra_content": {"a": 1}}]},
        {"role": "tool", "tool_call_id": "?"},
    ]
    changed, changes = apply_message(messages, ["tool_call_ids_fit_pattern"], TransformContext(id_pattern=pattern))
    assert changed[:2] == messages[:2]
    call, result = changed[2]["tool_calls"][0], changed[3]
    assert re.fullmatch(sent_pattern, call["id"])
    assert result["tool_call_id"] == call["id"]
    assert call["extra_content"] == {"a": 1}
    assert [change.path for change in changes] == ["$[2].tool_calls[0].id", "$[3].tool_call_id"]


def test_replacing_id_is_not_the_id_of_another_call() -> None:
    messages: list[JsonObject] = [
        {"role": "assistant", "tool_calls": [{"id": call_id, "function": {"name": "f"}}]}
        for call_id in ("functions.f:0", "call_1", "call_2", "functions.f:2")
    ]
    changed, _ = apply_message(
        messages, ["tool_call_ids_fit_pattern"], TransformContext(id_pattern=r"functions\..+:\d+")
    )
    assert [message["tool_calls"][0]["id"] for message in changed] == [f"functions.f:{index}" for index in (0, 1, 3, 2)]


def test_id_without_fitting_candidate_is_kept() -> None:
    messages = [{"role": "tool", "tool_call_id": "?"}]
    assert apply_message(messages, ["tool_call_ids_fit_pattern"], TransformContext(id_pattern="zzz")) == (messages, ())


def test_call_without_result_gets_one_before_the_next_message() -> None:
    name = "missing_tool_results_added"
    result = {"role": "tool", "tool_call_id": "c1", "content": "Sunny."}
    interrupted_result = {**result, "content": INTERRUPTED_RESULT}
    user = {"role": "user", "content": "And then?"}

    two_calls = build_calling_message(tool_calls=[CALL, {**CALL, "id": "c2"}])
    messages, changes = apply_message([two_calls, result, user, build_calling_message()], [name])
    assert messages == [
        two_calls,
        result,
        {**interrupted_result, "tool_call_id": "c2"},
        user,
        build_calling_message(),
        interrupted_result,
    ]
    assert {change.name for change in changes} == {name}
    complete = [build_calling_message(), {"role": "system", "content": "By the way."}, result, user]
    without_id = [build_calling_message(tool_calls=[{**CALL, "id": None}]), user]
    for history in ([build_calling_message(), result, user], complete, without_id):
        assert apply_message(history, [name]) == (history, ())


def test_call_with_google_signature_gets_no_second_signature() -> None:
    signed = {**CALL, "extra_content": {"google": {"thought_signature": "s"}}}
    assert apply_message([build_calling_message(tool_calls=[signed])], [SIGNATURE])[1] == ()
