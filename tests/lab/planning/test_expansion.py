from typing import Any

import pytest
from django.conf import settings

from tests.factories import make_model, make_provider
from tests.lab.scripted_runs import build_request
from toolbench.engine.policy.settings import resolve_policy
from toolbench.evals import catalogue as case_study
from toolbench.evals import name_filter, scenarios
from toolbench.evals.published import load_snapshots
from toolbench.lab.builtin_data import load_builtin_data
from toolbench.lab.models import Model, Preset, SamplingProfile
from toolbench.lab.planning import expansion
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.run_request import ConfigChoice, LaunchError, RunRequest

pytestmark = pytest.mark.django_db


def list_errors(request: RunRequest) -> dict[str, list[str]]:
    with pytest.raises(LaunchError) as refused:
        build_plan(request)
    return refused.value.errors


def test_build_plan_of_case_study_has_29_published_pairs() -> None:
    load_builtin_data()
    words = "default,recommended,conversation,creative,tool_calling"
    profiles = name_filter.filter_by_names(case_study.load_profiles(), words, names=lambda profile: profile.names)
    plan = build_plan(
        RunRequest(
            models=tuple(Model.objects.filter(provider__template="openrouter").values_list("pk", flat=True)),
            profiles=tuple(profile.name for profile in profiles),
            scenarios=tuple(scenario.slug for scenario in scenarios.select_scenarios("typical")),
            trials=10,
        )
    )
    assert (len(plan.configs), len(plan.cells), plan.trials) == (29, 145, 1450)
    pairs = {(config.model_name, config.profile) for config in plan.configs}
    assert pairs == {(cell.model, cell.profile) for cell in load_snapshots()[0].cells}


@pytest.mark.parametrize("name", ["vendor/a", "Qwen/a"])
def test_build_plan_without_applicable_profile_uses_default(name: str) -> None:
    SamplingProfile.objects.create(name="for-qwen", applies_to="qwen/*", options={"temperature": 0.7})
    plan = build_plan(build_request(make_model(name), profiles=("for-qwen",)))
    assert [config.profile for config in plan.configs] == ["default"]
    assert [(item.what, item.why) for item in plan.skipped] == [
        (f"{name} · for-qwen", "The profile applies to qwen/* only.")
    ]


def test_build_plan_without_applicability_uses_every_profile() -> None:
    SamplingProfile.objects.create(name="for-qwen", applies_to="qwen/*", options={"temperature": 0.7})
    plan = build_plan(build_request(make_model("vendor/a"), profiles=("for-qwen",), enforce_applicability=False))
    assert [config.profile for config in plan.configs] == ["for-qwen"]
    assert plan.configs[0].options == {"temperature": 0.7}


def test_build_plan_skips_constrained_method_without_support() -> None:
    plan = build_plan(build_request(make_model(), methods=("native", "constrained")))
    assert [config.method for config in plan.configs] == ["native"]
    assert plan.skipped[0].why == "The endpoint is not known to constrain answers."


def test_build_plan_names_streaming_of_skipped_configurations() -> None:
    model = make_model()
    configs = tuple(ConfigChoice(model.pk, method="constrained", stream=stream) for stream in (False, True))
    plan = build_plan(RunRequest(configs=(*configs, ConfigChoice(model.pk)), scenarios=("happy_path",)))
    whole, streamed = (item.what for item in plan.skipped)
    assert streamed == f"{whole} · streamed"


def test_build_plan_skips_examples_missing_in_scenario() -> None:
    request = build_request(make_model(), examples=("", "weather-1"), scenarios=("happy_path", "weather"))
    plan = build_plan(request)
    assert [(plan.configs[cell.config].examples, cell.scenario) for cell in plan.cells] == [
        ("", "happy_path"),
        ("", "weather"),
        ("weather-1", "weather"),
    ]
    assert plan.skipped[0].why == "The scenario has no set of examples weather-1."


def test_build_plan_tools_off_makes_tool_scenarios_not_applicable() -> None:
    model = make_model("minimax/minimax-m2-her", workarounds=["tool_use_disabled"])
    plan = build_plan(build_request(model, scenarios=("happy_path", "chat_only")))
    assert [(cell.scenario, cell.applicable) for cell in plan.cells] == [("happy_path", False), ("chat_only", True)]


def test_build_plan_baseline_omits_workarounds() -> None:
    model = make_model("minimax/minimax-m2-her", workarounds=["tool_use_disabled"])
    plan = build_plan(build_request(model, strategies=("baseline",)))
    assert [cell.applicable for cell in plan.cells] == [True]


def test_build_plan_raw_has_only_launch_layer() -> None:
    plan = build_plan(build_request(make_model(workarounds=["gemini_openrouter_compat"]), strategies=("raw",)))
    assert [name for name, _ in plan.configs[0].layers] == ["launch"]


def test_build_plan_layers_are_ordered() -> None:
    SamplingProfile.objects.create(name="warm", options={"temperature": 1})
    provider = make_provider(option_defaults={"user": "toolbench"})
    model = make_model(workarounds=["gemini_openrouter_compat", "mine"], provider=provider)
    Preset.objects.create(name="mine", patch={"max_turns": 3})
    request = build_request(model, profiles=("warm",), overrides={"max_turns": 5})
    assert [name for name, _ in build_plan(request).configs[0].layers] == [
        "launch",
        "provider options",
        "infrastructure",
        "workaround gemini_openrouter_compat",
        "workaround mine",
        "profile",
        "run",
    ]


def test_build_plan_accepts_user_preset_as_strategy() -> None:
    Preset.objects.create(name="short", patch={"max_turns": 2})
    plan = build_plan(build_request(make_model(), strategies=("short",)))
    assert ("preset short", {"max_turns": 2}) in plan.configs[0].layers


def test_build_plan_preset_keeps_requested_tool_use_mode() -> None:
    plan = build_plan(build_request(make_model(), strategies=("default_tool_calling",), tool_use_mode="enforced"))
    assert resolve_policy(plan.configs[0].layers).policy.tool_use_mode == "enforced"


def test_build_plan_reports_every_unknown_value_by_field() -> None:
    request = RunRequest(
        models=(987,), profiles=("p",), strategies=("s",), methods=("m",), scenarios=("x",), trials=0, request_cap=0
    )
    errors = list_errors(request)
    assert errors["models"] == ["There is no model 987."]
    assert errors["profiles"] == ["There is no profile p."]
    assert errors["strategies"] == ["There is no strategy or preset s."]
    assert errors["methods"] == ["There is no method m: choose from auto, native, text_json, template, constrained."]
    assert errors["scenarios"] == ["There is no scenario x."]
    assert errors["trials"] == ["Trials per cell must be between 1 and 100000."]
    assert errors["request_cap"] == ["A limit is a whole number from 1 to 2,147,483,647; leave it empty for none."]


def test_build_plan_of_empty_request_asks_for_model_and_scenario() -> None:
    errors = list_errors(RunRequest())
    assert errors == {"models": ["Choose at least one model."], "scenarios": ["Choose at least one scenario."]}


def test_build_plan_invalid_overrides_are_named_by_key() -> None:
    errors = list_errors(build_request(make_model(), overrides={"max_turns": 0, "nonsense": 1}))
    assert [sentence.partition(":")[0] for sentence in errors["overrides"]] == ["max_turns", "nonsense"]


def test_build_plan_unknown_tool_use_mode_is_refused() -> None:
    assert "tool_use_mode" in str(list_errors(build_request(make_model(), tool_use_mode="sometimes")))


def test_build_plan_with_too_many_trials_is_refused() -> None:
    sentence = "The run would have more than 100,000 trials. Choose fewer settings, scenarios or trials."
    model = make_model()
    many = {"scenarios": ("happy_path", "chat_only"), "trials": 60_000}
    assert list_errors(build_request(model, **many)) == {"trials": [sentence]}


def test_build_plan_with_too_many_configurations_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "MAX_RUN_TRIALS", 3)
    lists: dict[str, Any] = {"strategies": ("raw", "baseline"), "methods": ("native", "template"), "trials": 1}
    (sentence,) = list_errors(build_request(make_model(), **lists))["trials"]
    assert sentence.startswith("The run would have more than 3 trials.")


def test_build_plan_counts_a_repeated_configuration_once() -> None:
    model = make_model()
    plan = build_plan(build_request(model, model, methods=("native", "native"), scenarios=("happy_path", "happy_path")))
    assert (len(plan.configs), plan.trials) == (1, 3)


def test_build_plan_counts_least_and_most_requests() -> None:
    model = make_model(provider=make_provider(max_attempts=2))
    plan = build_plan(build_request(model, trials=2, overrides={"max_turns": 4}))
    assert (plan.least_requests, plan.most_requests, plan.paid_requests) == (4, 24, {"Example": 24})


def test_build_plan_most_requests_include_fallbacks_and_cut_streams() -> None:
    model = make_model(provider=make_provider(max_attempts=2))
    again = {"max_turns": 3, "fallback_retry_count": 1}
    assert build_plan(build_request(model, trials=1, overrides=again)).most_requests == 10
    assert build_plan(build_request(model, trials=1, overrides=again, tool_use_mode="relaxed")).most_requests == 16
    cut = {"max_turns": 3, "cut_stream_retries": 4}
    assert build_plan(build_request(model, trials=1, overrides=cut)).most_requests == 25


@pytest.mark.parametrize(
    ("fields", "most_requests"),
    [
        ({"overrides": {"drop_refused_parameters": False}}, 4),
        ({}, 6),  # tool_choice and parallel_tool_calls
        ({"overrides": {"llm_options_defaults": {"temperature": 0}}}, 7),
        ({"streams": (True,)}, 7),
        ({"scenarios": ("chat_only",)}, 4),
        ({"overrides": {"left_out_parameters": ["tool_choice"]}}, 5),
    ],
)
def test_build_plan_most_requests_include_refused_parameters(fields: dict[str, Any], most_requests: int) -> None:
    model = make_model(provider=make_provider(max_attempts=1))
    overrides = {"max_turns": 4, "cut_stream_retries": 0, **fields.get("overrides", {})}
    plan = build_plan(build_request(model, **(fields | {"trials": 1, "overrides": overrides})))
    assert plan.most_requests == most_requests


def test_build_plan_paid_requests_above_limit_need_confirmation() -> None:
    model = make_model(provider=make_provider(max_attempts=1))
    limit, one_turn = settings.CONFIRM_ABOVE_REQUESTS, {"max_turns": 1, "drop_refused_parameters": False}
    assert not build_plan(build_request(model, trials=limit, overrides=one_turn)).needs_confirmation
    assert build_plan(build_request(model, trials=limit + 1, overrides=one_turn)).needs_confirmation
    assert not build_plan(
        build_request(model, trials=limit + 1, overrides=one_turn, request_cap=100)
    ).needs_confirmation


@pytest.mark.parametrize("kind", ["local", "simulated"])
def test_build_plan_local_and_simulated_requests_are_unpaid(kind: str) -> None:
    plan = build_plan(build_request(make_model(provider=make_provider(kind=kind)), trials=1000))
    assert (plan.needs_confirmation, plan.paid_requests) == (False, {})


def test_build_plan_uses_explicit_configurations() -> None:
    model = make_model(constraint="grammar")
    configs = (ConfigChoice(model.pk, method="constrained"), ConfigChoice(model.pk, examples="weather-1"))
    plan = build_plan(RunRequest(configs=configs, scenarios=("weather",), trials=1))
    assert [(config.method, config.examples) for config in plan.configs] == [
        ("constrained", ""),
        ("native", "weather-1"),
    ]


@pytest.mark.parametrize(
    ("fields", "deterministic"),
    [
        ({}, False),
        ({"profiles": ("greedy",)}, True),
        ({"overrides": {"llm_options_defaults": {"temperature": 0}}}, True),
        ({"overrides": {"request_overrides": {"temperature": 0.0}}}, True),
        ({"profiles": ("greedy",), "overrides": {"request_overrides": {"temperature": 0.5}}}, False),
    ],
)
def test_build_plan_cell_is_deterministic_at_temperature_zero(fields: dict[str, Any], deterministic: bool) -> None:
    SamplingProfile.objects.create(name="greedy", options={"temperature": 0})
    plan = build_plan(RunRequest(models=(make_model().pk,), scenarios=("happy_path",), **fields))
    assert [cell.deterministic for cell in plan.cells] == [deterministic]


def test_build_plan_cell_is_deterministic_by_provider_default() -> None:
    model = make_model(provider=make_provider(option_defaults={"temperature": 0}))
    plan = build_plan(RunRequest(models=(model.pk,), scenarios=("happy_path",)))
    assert plan.cells[0].deterministic


def test_build_plan_template_method_uses_declared_text_format() -> None:
    model = make_model(capabilities={"text_format": "llama3_json"})
    (config,) = build_plan(build_request(model, methods=("template",))).configs
    assert dict(config.layers[0][1])["text_format"] == "llama3_json"


def test_build_plan_template_method_refuses_format_without_turns() -> None:
    request = build_request(make_model(), methods=("template",), overrides={"text_format": "react"})
    assert "turn tokens of the format 'react' are not known" in list_errors(request)["methods"][0]
