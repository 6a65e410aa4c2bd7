"""Tests of the catalogue of 17 models and 16 profiles."""

from toolbench.evals.catalogue import MATRIX_STRATEGIES, STRATEGIES, load_models, load_profiles


def test_catalogue_has_17_models_and_16_profiles() -> None:
    assert (len(load_models()), len({model.name for model in load_models()})) == (17, 17)
    assert (len(load_profiles()), len({profile.name for profile in load_profiles()})) == (16, 16)


def test_load_models_marks_variants_with_mixed_upstreams() -> None:
    assert all(model.mixed_upstreams == model.name.endswith(":nitro") for model in load_models())
    assert all(":" not in model.canonical for model in load_models())


def test_load_models_retired_note_has_date_and_source() -> None:
    retired = [model for model in load_models() if model.retired]
    assert [model.canonical for model in retired] == ["google/gemini-3-pro-preview", "openai/gpt-5.2-chat"]
    assert all("2026-" in model.note and "deprecations" in model.note for model in retired)


def test_load_models_workarounds_are_those_of_the_case_study() -> None:
    by_name = {model.canonical: model.workarounds for model in load_models()}
    assert by_name["minimax/minimax-m2-her"] == ("tool_use_disabled",)
    assert by_name["qwen/qwen3-235b-a22b-2507"] == ("content_tag_tool_call_fallback",)
    assert sum(bool(names) for names in by_name.values()) == 10


def test_strategies_add_layers_one_by_one() -> None:
    layers = [(item.infrastructure, item.provider, item.workarounds) for item in STRATEGIES]
    assert layers == [(False, False, False), (True, True, False), (True, True, True)]
    assert set(MATRIX_STRATEGIES) <= {item.name for item in STRATEGIES}
