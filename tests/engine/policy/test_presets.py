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


def build_patch(tool_use_mode: str = "enforced", **more: Any) -> Patch:
    """Return a patch as the published builder does: with three fixed keys and the given ones."""
    return {"tool_use_mode": tool_use_mode, "fix_empty_final": True, "fallback_retry_count": 0, **more}


PUBLISHED_WORKAROUNDS = {
    "deepseek_openrouter_compat": build_patch(message_transforms=[REASONING]),
    "gemini_openrouter_compat": build_patch(message_transforms=[SIGNATURE]),
    "content_tag_tool_call_fallback": build_patch(response_transforms=[TAGS]),
    "tool_use_disabled": build_patch("disabled"),
    "reasoner": {"message_transforms": [REASONING]},
}


def merge_published_patches(*patches: Patch) -> Patch:
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


def get_published_provider_patch(provider: str) -> Patch:
    reliability = build_patch(response_transforms=NORMALISING)
    if provider == "openrouter":
        return {**reliability, "request_overrides": {"parallel_tool_calls": False}}
    return reliability if provider in ("openai", "volcano-engine") else {}


def list_published_model_patches(model: str) -> list[Patch]:
    patches = []
    if model == "minimax/minimax-m2-her":
        patches.append(PUBLISHED_WORKAROUNDS["tool_use_disabled"])
    if model.startswith("deepseek/"):
        patches.append(PUBLISHED_WORKAROUNDS["deepseek_openrouter_compat"])
    if model.startswith("google/gemini-"):
        patches.append(PUBLISHED_WORKAROUNDS["gemini_openrouter_compat"])
    if "reasoner" in model.lower():
        patches.append(PUBLISHED_WORKAROUNDS["reasoner"])
    return patches


def build_published_patch(row: dict[str, Any]) -> Patch:
    default = build_patch("relaxed", fix_empty_final_disable_tools=True, response_transforms=NORMALISING)
    base_patches = [default, get_published_provider_patch(row["provider"])]
    if "workarounds" not in row:
        return merge_published_patches(*base_patches, *list_published_model_patches(row["model"]))
    workarounds = row["workarounds"] if row["strategy"] == "production" else []
    return merge_published_patches(*base_patches, row["asked"], *(PUBLISHED_WORKAROUNDS[name] for name in workarounds))


def resolve_engine_policy(row: dict[str, Any]) -> Policy:
    workarounds = row.get("workarounds", list_model_workarounds(row["model"]))
    patches = PatchSet(run=row["asked"])
    return resolve_policy(
        build_layers(row["strategy"], row["provider"], workarounds=workarounds, patches=patches)
    ).policy


def build_column(patch: Patch) -> dict[str, Any]:
    keys = ("tool_use_mode", "fix_empty_final", "fallback_retry_count", "fix_empty_final_disable_tools")
    return {
        **{key: patch[key] for key in keys},
        "parallel_tool_calls": patch.get("request_overrides", {}).get("parallel_tool_calls"),
        "message_transforms": list(patch.get("message_transforms", [])),
        "tags": TAGS in patch.get("response_transforms", []),
    }


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: row["expression"])
def test_presets_match_both_columns_of_golden_file(row: dict[str, Any]) -> None:
    policy = resolve_engine_policy(row)
    assert build_column(build_published_patch(row)) == row["published"]
    assert build_column({name: getattr(policy, name) for name in Policy.__dataclass_fields__}) == row["ours"]
    assert list(policy.response_transforms)[:3] == build_published_patch(row)["response_transforms"][:3] == NORMALISING


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: row["expression"])
def test_golden_row_has_reason_exactly_if_columns_differ(row: dict[str, Any]) -> None:
    assert bool(row["reason"]) == (row["published"] != row["ours"])


@pytest.mark.parametrize("name", list_preset_names())
def test_get_preset_returns_sparse_patch_that_resolves(name: str) -> None:
    patch = get_preset(name)
    assert patch
    assert get_preset_description(name).endswith(".")
    resolve_policy([(name, patch)])
    for kind in KINDS:
        check_names(kind, patch.get(f"{kind}_transforms", []))


@pytest.mark.parametrize(
    "name", [n for n in list_preset_names() if n not in ("default_tool_calling", "tool_use_disabled")]
)
def test_other_presets_leave_tool_use_mode_unset(name: str) -> None:
    assert not {"tool_use_mode", "fix_empty_final", "fallback_retry_count"} & set(get_preset(name))


def test_get_preset_returns_a_copy() -> None:
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
def test_get_preset_accepts_aliases_of_case_study(alias: str, name: str) -> None:
    assert get_preset(alias) == get_preset(name)


def test_unknown_preset_raises_error_with_its_name() -> None:
    with pytest.raises(UnknownPresetError, match="nope"):
        get_preset("nope")
    with pytest.raises(UnknownPresetError, match="nope"):
        build_layers("nope")


def test_get_provider_patch_of_template_without_defaults_is_empty() -> None:
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
def test_list_model_workarounds_matches_model_name(model: str, names: tuple[str, ...]) -> None:
    assert list_model_workarounds(model) == names


def test_build_openrouter_routing_omits_missing_keys_only() -> None:
    assert build_openrouter_routing() == {}
    assert build_openrouter_routing(transforms=[]) == {"request_overrides": {"transforms": []}}
    assert build_openrouter_routing(route="fallback", only=["a"], ignore=["b"]) == {
        "request_overrides": {"route": "fallback", "provider": {"only": ["a"], "ignore": ["b"]}}
    }


WORKAROUNDS = ("deepseek_openrouter_compat",)


def list_layer_names(strategy: str) -> list[str]:
    patches = PatchSet(profile={"llm_options_defaults": {"top_k": 1}}, run={"max_turns": 3}, scenario={"max_turns": 4})
    return [name for name, _ in build_layers(strategy, "openrouter", workarounds=WORKAROUNDS, patches=patches)]


@pytest.mark.parametrize(
    ("strategy", "strategy_layers"),
    [
        ("raw", []),
        ("baseline", ["infrastructure", "provider openrouter"]),
        ("production", ["infrastructure", "provider openrouter", "workaround deepseek_openrouter_compat"]),
    ],
)
def test_build_layers_puts_strategy_layers_below_patches(strategy: str, strategy_layers: list[str]) -> None:
    assert list_layer_names(strategy) == [*strategy_layers, "profile", "run", "scenario"]
    assert strategy in STRATEGIES


def test_build_layers_puts_preset_strategy_between_profile_and_run() -> None:
    preset_name = "content_tag_tool_call_fallback"
    assert list_layer_names(preset_name) == [
        "infrastructure",
        "provider openrouter",
        "profile",
        f"preset {preset_name}",
        "run",
        "scenario",
    ]


def test_build_layers_accepts_preset_patch_as_strategy() -> None:
    layers = build_layers("mine", patches=PatchSet(preset={"max_turns": 2}))
    assert layers[-1] == ("preset mine", {"max_turns": 2})


def test_raw_strategy_resolves_to_default_policy() -> None:
    policy = resolve_policy(build_layers("raw", "openrouter", workarounds=WORKAROUNDS)).policy
    assert policy == Policy()


def test_scenario_layer_wins_over_run_layer() -> None:
    resolved = resolve_policy(build_layers("raw", patches=PatchSet(run={"max_turns": 3}, scenario={"max_turns": 4})))
    assert (resolved.policy.max_turns, resolved.origins["max_turns"]) == (4, "scenario")


FACTS = json.loads((Path(presets_module.__file__).parents[1] / "data" / "presets.json").read_text("utf-8"))
TEMPLATES = ("", "openai", "openrouter", "volcanoengine")


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("name", [*FACTS["case_study"]["presets"], *FACTS["aliases"]])
def test_case_study_preset_drops_refused_parameters_only_if_run_does(name: str, template: str) -> None:
    assert not resolve_policy(build_layers(name, template)).policy.drop_refused_parameters
    preset_patch = PatchSet(preset=get_preset(name))  # a what-if passes the preset so
    assert not resolve_policy(build_layers(name, template, patches=preset_patch)).policy.drop_refused_parameters
    run_patch = PatchSet(run={"drop_refused_parameters": True})
    assert resolve_policy(build_layers(name, template, patches=run_patch)).policy.drop_refused_parameters


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("name", FACTS["case_study"]["presets"])
def test_case_study_preset_as_workaround_keeps_drop_of_production(name: str, template: str) -> None:
    assert resolve_policy(build_layers("production", template, workarounds=[name])).policy.drop_refused_parameters


def test_other_presets_drop_refused_parameters() -> None:
    others = sorted({*list_preset_names()} - {*list_case_study_presets()})
    assert "mistral_ids" in others
    assert all(resolve_policy(build_layers(name)).policy.drop_refused_parameters for name in others)


def test_case_study_presets_contain_every_name_of_its_rules() -> None:
    defaults = [name for names in FACTS["provider_defaults"].values() for name in names]
    workarounds = [name for rule in FACTS["model_workarounds"] for name in rule["presets"]]
    published_names = [name for name in PUBLISHED_WORKAROUNDS if name != "reasoner"]
    named = {*FACTS["aliases"].values(), *defaults, *workarounds, *published_names}
    assert named <= {*list_case_study_presets()} <= {*list_preset_names()}
