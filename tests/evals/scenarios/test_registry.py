"""Tests of the list of scenarios and of the words that select them."""

import pytest

from tests.evals.manual_trial import ManualTrial
from tests.evals.records import build_calling_turn, build_ended, build_text_turn
from toolbench.engine.events import EndReason, LoopResult
from toolbench.evals import scenarios

TYPICAL = ["happy_path", "missing_workspace_id", "type_error_recovery", "long_arguments_guard", "chat_only"]
CASE_STUDY = [
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
        ("all", CASE_STUDY),
        ("full", CASE_STUDY),
        ("*", CASE_STUDY),
        ("chat_only, happy_path", ["happy_path", "chat_only"]),
        ("simple,weather", ["happy_path", "chat_only", "weather"]),
        ("nobody,weather", ["weather"]),
        ("nobody", TYPICAL),
        ("parallel", ["parallel_same", "parallel_mixed", "parallel_single"]),
        ("Control", ["chat_only", "chat_plain"]),
    ],
)  # fmt: skip
def test_select_scenarios_by_words_keeps_catalogue_order(words: str, slugs: list[str]) -> None:
    assert [scenario.slug for scenario in scenarios.select_scenarios(words)] == slugs
    assert [scenario.slug for scenario in scenarios.select_scenarios(words.split(","))] == slugs


def test_list_unknown_words_names_the_unknown_ones() -> None:
    assert scenarios.list_unknown_words("simple, nobody,weather") == ("nobody",)


def test_list_scenarios_begins_with_the_eight_of_the_case_study() -> None:
    slugs = [scenario.slug for scenario in scenarios.list_scenarios()]
    assert slugs[:8] == CASE_STUDY
    assert slugs[8:12] == ["long_arguments_guard_uncapped", "chat_plain", "weather", "classify_intent"]


def test_group_scenarios_keeps_controls_in_one_group() -> None:
    groups = scenarios.group_scenarios()
    assert list(groups) == ["tools", "control", "weather", "intent", *scenarios.PACKS]
    assert all(scenario.control == (name == "control") for name, found in groups.items() for scenario in found)


def test_lookup_scenario_unknown_slug_raises_key_error() -> None:
    with pytest.raises(KeyError, match="there is no scenario nobody"):
        scenarios.lookup_scenario("nobody")


def test_list_scenarios_parallel_calls_need_native_or_template() -> None:
    narrow = {scenario.slug: scenario.methods for scenario in scenarios.list_scenarios() if len(scenario.methods) < 4}
    together = ["partial_success_failure", "happy_path_parallel", "parallel_same", "parallel_mixed", "parallel_single"]
    assert narrow == dict.fromkeys(together, ("native", "template"))


def build_shortest_pass(trial: ManualTrial) -> LoopResult:
    """Return the loop result that passes with the fewest turns."""
    match trial.instance.scenario:
        case "happy_path_parallel":
            return build_ended(build_calling_turn(0, trial.get(), trial.patch()), build_text_turn(1, "Done."))
        case "weather":
            return build_ended(
                build_calling_turn(0, trial.call("get_weather", city=trial.values["city"])),
                end=EndReason.MAX_TURNS_EXCEEDED,
            )
        case "classify_intent":
            call = trial.call("classify_intent", workspace_id=trial.values["workspace_id"])
            return build_ended(build_calling_turn(0, call), end=EndReason.MAX_TURNS_EXCEEDED)
        case "chat_only" | "chat_plain":
            return build_ended(
                build_text_turn(0, trial.values["sum"] if trial.instance.scenario == "chat_plain" else "Done.")
            )
        case _:
            return build_ended(build_calling_turn(0, trial.patch()), build_text_turn(1, "Done."))


CORE = [scenario.slug for scenario in scenarios.list_scenarios() if scenario.group not in scenarios.PACKS]


@pytest.mark.parametrize("slug", CORE)
def test_core_scenario_passes_with_fewest_requests_and_not_with_fewer(slug: str) -> None:
    trial = ManualTrial(slug)
    record = build_shortest_pass(trial)
    assert (trial.judge(record).outcome, len(record.turns)) == ("pass", trial.scenario.min_requests)
    again = ManualTrial(slug)
    shorter = build_shortest_pass(again).turns[:-1]
    assert again.judge(build_ended(*shorter, end=EndReason.MAX_TURNS_EXCEEDED)).outcome == "fail"
