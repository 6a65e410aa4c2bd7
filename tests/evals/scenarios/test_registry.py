"""The list of scenarios and the preset words."""

import pytest

from toolbench.evals import scenarios

TYPICAL = ["happy_path", "missing_workspace_id", "type_error_recovery", "long_arguments_guard", "chat_only"]
EIGHT = [
    "happy_path", "partial_success_failure", "missing_workspace_id", "type_error_recovery", "happy_path_parallel",
    "long_arguments_guard", "tool_output_truncation", "chat_only",
]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "slugs"),
    [
        ("", TYPICAL),
        ("default", TYPICAL),
        ("smoke", TYPICAL),
        ("TYPICAL", TYPICAL),
        ("simple", ["happy_path", "chat_only"]),
        (
            "extreme",
            [
                "happy_path", "partial_success_failure", "missing_workspace_id", "type_error_recovery",
                "long_arguments_guard", "tool_output_truncation", "chat_only",
            ],
        ),
        ("all", EIGHT),
        ("full", EIGHT),
        ("*", EIGHT),
        ("chat_only, happy_path", ["happy_path", "chat_only"]),
        ("simple,weather", ["happy_path", "chat_only", "weather"]),
        ("nobody,weather", ["weather"]),
        ("nobody", TYPICAL),
    ],
)  # fmt: skip
def test_words_select_scenarios_in_catalogue_order(words: str, slugs: list[str]) -> None:
    assert [scenario.slug for scenario in scenarios.select(words)] == slugs
    assert [scenario.slug for scenario in scenarios.select(words.split(","))] == slugs


def test_words_nobody_knows_can_be_named() -> None:
    assert scenarios.unknown("simple, nobody,weather") == ("nobody",)


def test_the_eight_of_the_case_study_come_first() -> None:
    slugs = [scenario.slug for scenario in scenarios.all()]
    assert slugs[:8] == EIGHT
    assert slugs[8:] == ["long_arguments_guard_uncapped", "chat_plain", "weather", "classify_intent"]


def test_groups_keep_controls_apart() -> None:
    groups = scenarios.groups()
    assert list(groups) == ["tools", "control", "weather", "intent"]
    assert all(scenario.control == (name == "control") for name, found in groups.items() for scenario in found)


def test_an_unknown_slug_is_said() -> None:
    with pytest.raises(KeyError, match="there is no scenario nobody"):
        scenarios.find("nobody")


def test_a_task_of_two_calls_in_one_message_needs_a_method_that_can_make_them() -> None:
    narrow = {scenario.slug: scenario.methods for scenario in scenarios.all() if len(scenario.methods) < 4}
    assert narrow == dict.fromkeys(["partial_success_failure", "happy_path_parallel"], ("native", "template"))
