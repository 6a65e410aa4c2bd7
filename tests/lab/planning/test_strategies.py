"""Strategy expressions, and the layers that a plan builds from them."""

import pytest

from tests.factories import make_model
from toolbench.engine.policy.presets import list_case_study_presets
from toolbench.engine.policy.settings import resolve_policy
from toolbench.lab.builtin_data import load_builtin_data
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.run_request import LaunchError, RunRequest
from toolbench.lab.planning.strategies import StrategyExpression, parse_strategy


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("production", StrategyExpression("production")),
        ("my-preset", StrategyExpression("my-preset")),
        ("production+one!two", StrategyExpression("production", ("one",), ("two",))),
        ("raw!one+two+three", StrategyExpression("raw", ("two", "three"), ("one",))),
    ],
)
def test_parse_strategy_splits_base_added_and_removed_presets(text: str, words: StrategyExpression) -> None:
    assert parse_strategy(text) == words


@pytest.mark.django_db
def test_build_plan_strategy_adds_and_removes_presets() -> None:
    load_builtin_data()
    model = make_model("qwen/a", workarounds=["content_tag_tool_call_fallback", "deepseek_openrouter_compat"])
    names = ("production!content_tag_tool_call_fallback", "production+content_tag_tool_call_fallback")
    plan = build_plan(RunRequest(models=(model.pk,), strategies=names, scenarios=("happy_path",)))
    off, on = ([name for name, _ in config.layers] for config in plan.configs)
    assert "workaround content_tag_tool_call_fallback" not in off
    assert "workaround content_tag_tool_call_fallback" in on
    assert "workaround deepseek_openrouter_compat" in off
    assert plan.configs[0].policy_hash != plan.configs[1].policy_hash


@pytest.mark.django_db
def test_build_plan_unknown_preset_in_strategy_is_refused() -> None:
    model = make_model()
    with pytest.raises(LaunchError, match=r"no strategy or preset nowhere\."):
        build_plan(RunRequest(models=(model.pk,), strategies=("production+nowhere",), scenarios=("happy_path",)))


@pytest.mark.django_db
def test_build_plan_only_case_study_presets_keep_refused_parameters() -> None:
    load_builtin_data()
    model = make_model()
    names = (*list_case_study_presets(), "production", "baseline", "argument_repair", "production+default_tool_calling")
    plan = build_plan(RunRequest(models=(model.pk,), strategies=names, scenarios=("happy_path",)))
    dropping = {
        config.strategy for config in plan.configs if resolve_policy(config.layers).policy.drop_refused_parameters
    }
    assert {config.strategy for config in plan.configs} - dropping == {*list_case_study_presets()}
