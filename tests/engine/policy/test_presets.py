"""Presets and strategies.

The published column of the golden file is computed by a replica of the case study's builder, the other by the engine.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from toolbench.engine.policy import presets as presets_module
from toolbench.engine.policy.presets import (
    STRATEGIES,
    PatchSet,
    UnknownPresetError,
    build_layers,
    build_openrouter_routing,
    get_preset,
    get_preset_description,
    get_provider_patch,
    list_case_study_presets,
    list_model_workarounds,
    list_preset_names,
)
from toolbench.engine.policy.settings import Policy, resolve_policy
from toolbench.engine.transforms import KINDS, check_names

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "presets.json").read_text("utf-8"))
NORMALISING = [
    "assistant_function_call_to_tool_calls",
    "assistant_tool_calls_object_to_array",
    "assistant_tool_calls_arguments_json_string_if_hash",
]
TAGS = "assistant_content_tool_call_tags_to_tool_calls"
REASONING = "assistant_tool_calls_reasoning_content_empty_if_missing"
SIGNATURE = "assistant_tool_calls_signature_skip_validator_if_missing"

Patch = dict[str, Any]


def built(tool_use_mode: str = "enforced", **more: Any) -> Patch:
    """The published builder: three keys always, the rest where given."""
    return {"tool_use_mode": tool_use_mode, "fix_empty_final": True, "fallback_retry_count": 0, **more}


PUBLISHED_WORKAROUNDS = {
    "deepseek_openrouter_compat": built(message_transforms=[REASONING]),
    "gemini_openrouter_compat": built(message_transforms=[SIGNATURE]),
    "content_tag_tool_call_fallback": built(response_transforms=[TAGS]),
    "tool_use_disabled": built("disabled"),
    "reasoner": {"message_transforms": [REASONING]},
}


def published_merge(*patches: Patch) -> Patch:
    merged: Patch = {}
    for patch in patches:
        for key, value in patch.items():
            if key.endswith("_transforms"):
                merged[key] = list(dict.fromkeys([*merged.get(key, []), *value]))
            elif key == "request_overrides":
                merged[key] = {**merged.get(key, {}), **value}
            else:
                merged[key] = value
    return merged


def published_provider(provider: str) -> Patch:
    reliability = built(response_transforms=NORMALISING)
    if provider == "openrouter":
        return {**reliability, "request_overrides": {"parallel_tool_calls": False}}
    return reliability if provider in ("openai", "volcano-engine") else {}


def published_model(model: str) -> list[Patch]:
    found = []
    if model == "minimax/minimax-m2-her":
        found.append(PUBLISHED_WORKAROUNDS["tool_use_disabled"])
    if model.startswith("deepseek/"):
        found.append(PUBLISHED_WORKAROUNDS["deepseek_openrouter_compat"])
    if model.startswith("google/gemini-"):
        found.append(PUBLISHED_WORKAROUNDS["gemini_openrouter_compat"])
    if "reasoner" in model.lower():
        found.append(PUBLISHED_WORKAROUNDS["reasoner"])
    return found


def published(row: dict[str, Any]) -> Patch:
    default = built("relaxed", fix_empty_final_disable_tools=True, response_transforms=NORMALISING)
    lowest = [default, published_provider(row["provider"])]
    if "workarounds" not in row:
        return published_merge(*lowest, *published_model(row["model"]))
    named = row["workarounds"] if row["strategy"] == "production" else []
    return published_merge(*lowest, row["asked"], *(PUBLISHED_WORKAROUNDS[name] for name in named))


def ours(row: dict[str, Any]) -> Policy:
    workarounds = row.get("workarounds", list_model_workarounds(row["model"]))
    wishes = PatchSet(run=row["asked"])
    return resolve_policy(
        build_layers(row["strategy"], row["provider"], workarounds=workarounds, patches=wishes)
    ).policy


def column(patch: Patch) -> dict[str, Any]:
    keys = ("tool_use_mode", "fix_empty_final", "fallback_retry_count", "fix_empty_final_disable_tools")
    return {
        **{key: patch[key] for key in keys},
        "parallel_tool_calls": patch.get("request_overrides", {}).get("parallel_tool_calls"),
        "message_transforms": list(patch.get("message_transforms", [])),
        "tags": TAGS in patch.get("response_transforms", []),
    }


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: row["expression"])
def test_both_columns_of_the_golden_file_hold(row: dict[str, Any]) -> None:
    policy = ours(row)
    assert column(published(row)) == row["published"]
    assert column({name: getattr(policy, name) for name in Policy.__dataclass_fields__}) == row["ours"]
    assert list(policy.response_transforms)[:3] == published(row)["response_transforms"][:3] == NORMALISING


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: row["expression"])
def test_every_difference_has_its_reason_and_nothing_else_has_one(row: dict[str, Any]) -> None:
    assert bool(row["reason"]) == (row["published"] != row["ours"])


@pytest.mark.parametrize("name", list_preset_names())
def test_every_preset_is_a_sparse_patch_that_resolves(name: str) -> None:
    patch = get_preset(name)
    assert patch
    assert get_preset_description(name).endswith(".")
    resolve_policy([(name, patch)])
    for kind in KINDS:
        check_names(kind, patch.get(f"{kind}_transforms", []))


@pytest.mark.parametrize(
    "name", [n for n in list_preset_names() if n not in ("default_tool_calling", "tool_use_disabled")]
)
def test_no_preset_but_the_two_about_it_says_anything_of_the_mode(name: str) -> None:
    assert not {"tool_use_mode", "fix_empty_final", "fallback_retry_count"} & set(get_preset(name))


def test_a_preset_is_a_copy_that_can_be_changed_without_harm() -> None:
    get_preset("infrastructure")["response_transforms"].clear()
    assert get_preset("infrastructure")["response_transforms"] == NORMALISING


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("deepseek_compat", "deepseek_openrouter_compat"),
        ("Gemini-Compat", "gemini_openrouter_compat"),
        ("content_tag_fallback", "content_tag_tool_call_fallback"),
        ("disable_tool_use", "tool_use_disabled"),
        ("tools_disabled", "tool_use_disabled"),
    ],
)
def test_the_case_studys_short_names_are_understood(alias: str, name: str) -> None:
    assert get_preset(alias) == get_preset(name)


def test_an_unknown_preset_is_refused_by_name() -> None:
    with pytest.raises(UnknownPresetError, match="nope"):
        get_preset("nope")
    with pytest.raises(UnknownPresetError, match="nope"):
        build_layers("nope")


def test_a_template_without_defaults_gives_an_empty_patch() -> None:
    assert get_provider_patch("llama_cpp") == {}


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("minimax/minimax-m2-her", ("tool_use_disabled",)),
        ("minimax/minimax-m2-her:nitro", ()),
        ("deepseek/deepseek-reasoner", ("deepseek_openrouter_compat", "reasoner_compat")),
        ("acme/Big-REASONER", ("reasoner_compat",)),
        ("google/gemini-3-pro-preview", ("gemini_openrouter_compat",)),
        ("google/gemma-3", ()),
    ],
)
def test_a_models_name_says_which_workarounds_it_needs(model: str, names: tuple[str, ...]) -> None:
    assert list_model_workarounds(model) == names


def test_routing_omits_missing_keys_and_keeps_empty_transforms() -> None:
    assert build_openrouter_routing() == {}
    assert build_openrouter_routing(transforms=[]) == {"request_overrides": {"transforms": []}}
    assert build_openrouter_routing(route="fallback", only=["a"], ignore=["b"]) == {
        "request_overrides": {"route": "fallback", "provider": {"only": ["a"], "ignore": ["b"]}}
    }


WORKAROUNDS = ("deepseek_openrouter_compat",)


def layer_names(strategy: str) -> list[str]:
    wishes = PatchSet(profile={"llm_options_defaults": {"top_k": 1}}, run={"max_turns": 3}, scenario={"max_turns": 4})
    return [name for name, _ in build_layers(strategy, "openrouter", workarounds=WORKAROUNDS, patches=wishes)]


@pytest.mark.parametrize(
    ("strategy", "below"),
    [
        ("raw", []),
        ("baseline", ["infrastructure", "provider openrouter"]),
        ("production", ["infrastructure", "provider openrouter", "workaround deepseek_openrouter_compat"]),
    ],
)
def test_a_strategy_is_the_layers_below_the_wishes(strategy: str, below: list[str]) -> None:
    assert layer_names(strategy) == [*below, "profile", "run", "scenario"]
    assert strategy in STRATEGIES


def test_other_strategy_is_preset_between_profile_and_run_over_baseline() -> None:
    named = "content_tag_tool_call_fallback"
    assert layer_names(named) == [
        "infrastructure",
        "provider openrouter",
        "profile",
        f"preset {named}",
        "run",
        "scenario",
    ]


def test_a_preset_of_ones_own_can_be_a_strategy() -> None:
    layers = build_layers("mine", patches=PatchSet(preset={"max_turns": 2}))
    assert layers[-1] == ("preset mine", {"max_turns": 2})


def test_raw_leaves_every_transform_and_the_parallel_flag_unset() -> None:
    policy = resolve_policy(build_layers("raw", "openrouter", workarounds=WORKAROUNDS)).policy
    assert policy == Policy()


def test_the_scenario_has_the_last_word_over_the_run() -> None:
    resolved = resolve_policy(build_layers("raw", patches=PatchSet(run={"max_turns": 3}, scenario={"max_turns": 4})))
    assert (resolved.policy.max_turns, resolved.origins["max_turns"]) == (4, "scenario")


FACTS = json.loads((Path(presets_module.__file__).parents[1] / "data" / "presets.json").read_text("utf-8"))
TEMPLATES = ("", "openai", "openrouter", "volcanoengine")


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("name", [*FACTS["case_study"]["presets"], *FACTS["aliases"]])
def test_a_preset_of_the_case_study_drops_no_parameter(name: str, template: str) -> None:
    assert not resolve_policy(build_layers(name, template)).policy.drop_refused_parameters
    given = PatchSet(preset=get_preset(name))  # as a what-if gives it
    assert not resolve_policy(build_layers(name, template, patches=given)).policy.drop_refused_parameters
    asked = PatchSet(run={"drop_refused_parameters": True})
    assert resolve_policy(build_layers(name, template, patches=asked)).policy.drop_refused_parameters


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("name", FACTS["case_study"]["presets"])
def test_as_a_workaround_it_leaves_production_as_it_is(name: str, template: str) -> None:
    assert resolve_policy(build_layers("production", template, workarounds=[name])).policy.drop_refused_parameters


def test_other_presets_keep_dropping_what_is_refused() -> None:
    others = sorted({*list_preset_names()} - {*list_case_study_presets()})
    assert "mistral_ids" in others
    assert all(resolve_policy(build_layers(name)).policy.drop_refused_parameters for name in others)


def test_whatever_the_case_study_names_is_among_its_presets() -> None:
    defaults = [name for names in FACTS["provider_defaults"].values() for name in names]
    workarounds = [name for rule in FACTS["model_workarounds"] for name in rule["presets"]]
    published = [name for name in PUBLISHED_WORKAROUNDS if name != "reasoner"]
    named = {*FACTS["aliases"].values(), *defaults, *workarounds, *published}
    assert named <= {*list_case_study_presets()} <= {*list_preset_names()}
