from typing import Any

import pytest

from toolbench.engine.transforms import (
    KINDS,
    UnknownTransformError,
    apply_response,
    check_names,
    list_names,
)

PUBLISHED_NAMES = {
    "message": {
        "assistant_tool_calls_content_null_if_blank",
        "assistant_tool_calls_reasoning_content_empty_if_missing",
        "assistant_tool_calls_signature_skip_validator_if_missing",
    },
    "response": {
        "assistant_function_call_to_tool_calls",
        "assistant_tool_calls_object_to_array",
        "assistant_tool_calls_arguments_json_string_if_hash",
        "assistant_content_tool_call_tags_to_tool_calls",
    },
    "tool": {"openai_tools_strip_function_descriptions"},
    "tool_call": {"assistant_tool_calls_arguments_blank_to_empty_object"},
    "tool_result": {"tool_result_compact_envelope"},
}
TOOLBENCH_NAMES = {
    "tool_call_ids_nine_characters",
    "tool_call_ids_fit_pattern",
    "midturn_system_to_user",
    "missing_tool_results_added",
    "assistant_tool_calls_content_empty_if_null",
    "reasoning_left_out",
    "reasoning_in_think_tags",
    "reasoning_of_earlier_turns_left_out",
    "reasoning_text_left_out",
    "tool_calls_from_text",
    "tool_calls_from_reasoning",
    "multi_tool_use_parallel_to_calls",
    "tool_call_names_cleaned",
}


def test_list_names_contains_the_ten_published_names() -> None:
    assert {kind: set(list_names(kind)) - TOOLBENCH_NAMES for kind in PUBLISHED_NAMES} == PUBLISHED_NAMES
    assert set(KINDS) - set(PUBLISHED_NAMES) == {"request"}


def test_check_names_normalises_case_blanks_and_hyphens() -> None:
    assert check_names("tool_result", ["  Tool-Result-Compact-Envelope "]) == ("tool_result_compact_envelope",)


def test_check_names_ignores_blank_names() -> None:
    assert check_names("message", ["", "  "]) == ()


@pytest.mark.parametrize("kind", list(KINDS))
def test_check_names_refuses_unknown_names_only_in_strict_mode(kind: str) -> None:
    with pytest.raises(UnknownTransformError, match=f"unknown {kind} transform: nope, nada"):
        check_names(kind, ["nope", "nada"])
    assert check_names(kind, ["nope"], strict=False) == ()


def test_apply_response_with_unknown_name_changes_nothing() -> None:
    message: dict[str, Any] = {"content": ""}
    changed, changes = apply_response(message, ["nope"])
    assert changed is message
    assert changes == ()
