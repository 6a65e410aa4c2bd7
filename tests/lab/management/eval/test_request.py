"""From options to the request that is launched."""

import re
from typing import Any

import pytest

from tests.factories import make_model, make_provider
from toolbench.lab.builtin_data import load_builtin_data
from toolbench.lab.management.eval.names import EvalError
from toolbench.lab.management.eval.options import FULL_PROFILES, EvalOptions
from toolbench.lab.management.eval.output import render_plan_lines
from toolbench.lab.management.eval.request import EvalRequest, build_eval_request
from toolbench.lab.models import SamplingProfile
from toolbench.lab.planning.expansion import build_plan

pytestmark = pytest.mark.django_db


@pytest.fixture
def catalogue() -> None:
    load_builtin_data()


def asked(**said: Any) -> EvalRequest:
    return build_eval_request(EvalOptions(**said))


def names(found: EvalRequest) -> list[str]:
    return [model.name for model in found.models]


@pytest.mark.usefixtures("catalogue")
def test_the_case_studys_filter_is_29_pairs_and_1450_trials() -> None:
    plan = build_plan(asked(models="all", profiles=FULL_PROFILES, trials=10).request)
    assert len({(config.model, config.profile) for config in plan.configs}) == 29
    assert plan.trials == 1450
    assert next(render_plan_lines(plan)) == (
        "29 pairs of model and profile, 29 configurations, 145 cells, 1,450 trials"
    )


def test_plan_lines_name_providers_that_share_a_model_name() -> None:
    SamplingProfile.objects.get_or_create(name="default")
    for name in ("First", "Second"):
        make_model("agent", provider=make_provider(name))
    plan = build_plan(asked(models="agent", profiles="default", trials=1).request)
    assert "agent at First and Second: --provider chooses one of them" in list(render_plan_lines(plan))


@pytest.mark.usefixtures("catalogue")
def test_without_a_provider_nothing_simulated_or_local_is_chosen() -> None:
    assert {model.provider.name for model in asked(models="all").models} == {"OpenRouter"}
    assert names(asked(models="perfect", provider="simulated")) == ["perfect"]


@pytest.mark.usefixtures("catalogue")
def test_stable_models_are_the_default() -> None:
    assert len(asked().models) == 6


@pytest.mark.usefixtures("catalogue")
def test_models_are_found_by_name_vendor_tag_and_glob() -> None:
    make_model("acme/one:nitro", tags=["quick"])
    make_model("acme/two")
    make_model("other/three", tags=["quick"])
    assert names(asked(models="acme/one", provider="example")) == ["acme/one:nitro"]
    assert names(asked(models="acme", provider="example")) == ["acme/one:nitro", "acme/two"]
    assert names(asked(models="quick,!acme", provider="example")) == ["other/three"]
    assert names(asked(models="*/t*", provider="example")) == ["acme/two", "other/three"]


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize("words", ["Local, tool template", "local-tools"])
def test_a_provider_is_found_by_its_whole_name_and_by_its_service(words: str) -> None:
    assert {model.provider.name for model in asked(models="all", provider=words).models} == {"Local, tool template"}
    with pytest.raises(EvalError, match="“Local, own template”, “Local, tool template”"):
        asked(models="all", provider="nowhere")


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"models": "nobody"}, "No model at OpenRouter matches 'nobody'"),
        ({"models": "perfect"}, "Simulated has one: add --provider."),
        ({"provider": "nowhere"}, "No provider matches 'nowhere'"),
        ({"profiles": "nothing"}, "No sampling profile matches 'nothing'"),
        ({"strategies": "nothing"}, "No strategy or preset matches 'nothing'"),
        ({"scenarios": "nothing"}, "No scenario matches 'nothing'"),
    ],
)
def test_a_filter_that_matches_nothing_is_refused(said: dict[str, str], sentence: str) -> None:
    with pytest.raises(EvalError, match=sentence.replace(".", r"\.")):
        asked(**said)


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"models": "openai/gpt-5.2,opnai/typo"}, "No model at OpenRouter matches 'opnai/typo'; the nearest: “openai”"),
        ({"models": "stable,!deepsek"}, "matches '!deepsek'; the nearest: “deepseek”"),
        ({"models": "stable,zz*"}, "No model at OpenRouter matches 'zz*'; there are “"),
        ({"provider": "openrouter,simulatd"}, "No provider matches 'simulatd'; the nearest: “simulated”"),
        ({"profiles": "default,recomended"}, "No sampling profile matches 'recomended'; the nearest: “recommended”"),
        ({"strategies": "raw,prodution"}, "No strategy or preset matches 'prodution'; the nearest: “production”"),
        ({"strategies": "raw+ask_agian"}, "No strategy or preset matches 'ask_agian'; the nearest: “ask_again”"),
        ({"scenarios": "simple,happy_pth"}, "No scenario matches 'happy_pth'; the nearest: “happy_path"),
        ({"scenarios": "simple,set:none"}, "No scenario matches 'set:none'"),
        ({"allow": ("state_gte",)}, "No tool of these scenarios matches 'state_gte'; the nearest: “state_get”"),
        ({"deny": ("nothing_like_it",)}, "matches 'nothing_like_it'; there are “"),
        (
            {"overrides": {"response_transforms": ["tool_calls_from_txt"]}},
            "No entry of response_transforms matches 'tool_calls_from_txt'; the nearest: “tool_calls_from_text”",
        ),
        ({"overrides": {"argument_repairs": "comments,coments"}}, "matches 'coments'; the nearest: “comments”"),
    ],
)
def test_unknown_word_beside_known_ones_is_refused(said: dict[str, Any], sentence: str) -> None:
    with pytest.raises(EvalError, match=re.escape(sentence)):
        asked(**said)


@pytest.mark.usefixtures("catalogue")
def test_bare_model_name_is_taken_where_no_other_model_has_it() -> None:
    make_model("acme/one:nitro")
    make_model("acme/two")
    make_model("other/two")
    assert names(asked(models="one", provider="example")) == ["acme/one:nitro"]
    assert names(asked(models="ONE:nitro,!acme/two", provider="example")) == ["acme/one:nitro"]
    with pytest.raises(EvalError, match=r"(?i)'TWO' may be “acme/two” or “other/two”: write"):
        asked(models="TWO", provider="example")
    with pytest.raises(EvalError, match="'two' may be “acme/two” or “other/two”: write the whole name"):
        asked(models="one,two", provider="example")


@pytest.mark.usefixtures("catalogue")
def test_presets_on_top_of_a_strategy_are_chosen_by_words() -> None:
    assert asked(strategies="raw+ask_again,baseline").request.strategies == ("baseline", "raw+ask_again")


@pytest.mark.usefixtures("catalogue")
def test_strategies_are_chosen_by_words_and_matrices() -> None:
    assert asked(strategies="all").request.strategies == ("raw", "baseline", "production")
    assert asked(strategies="base,deepseek_openrouter_compat").request.strategies == (
        "baseline",
        "deepseek_openrouter_compat",
    )
    assert asked(strategies="raw,wire_standard").request.strategies == ("raw", "wire_standard")
    assert asked(strategy_matrix=True).request.strategies == ("baseline", "production")
    assert asked(fallback_matrix=True).request.strategies == (
        "production!content_tag_tool_call_fallback",
        "production+content_tag_tool_call_fallback",
    )


@pytest.mark.usefixtures("catalogue")
def test_with_tools_off_only_the_control_is_tried() -> None:
    assert asked(tool_use_mode="disabled").request.scenarios == ("chat_only",)


@pytest.mark.usefixtures("catalogue")
def test_settings_become_one_patch_and_the_users_own_comes_last() -> None:
    request = asked(
        temperature=0.5,
        llm_options={"temperature": 1, "seed": 3},
        fix_empty_final=False,
        fallback_retries=2,
        tag_fallback=True,
        transforms="none",
        provider_order=("a",),
        request_overrides={"user": "me"},
        overrides={"max_turns": 6, "llm_options_defaults": {"temperature": 0}},
    ).request
    assert request.overrides == {
        "llm_options_defaults": {"temperature": 0, "seed": 3},
        "fix_empty_final": False,
        "fallback_retry_count": 2,
        "response_transforms": ["assistant_content_tool_call_tags_to_tool_calls"],
        "request_overrides": {"transforms": [], "provider": {"order": ["a"]}, "user": "me"},
        "max_turns": 6,
    }


@pytest.mark.usefixtures("catalogue")
def test_routing_is_sent_to_nobody_but_openrouter() -> None:
    make_model("acme/one", provider=make_provider("Acme"))
    with pytest.raises(EvalError, match="apply to OpenRouter only"):
        asked(models="all", provider="acme", route="fallback")


@pytest.mark.usefixtures("catalogue")
def test_all_tools_mean_no_mask() -> None:
    assert asked(allow=("all",)).request.tool_allowlist == ()
    assert asked(allow=("state_get",)).request.tool_allowlist == ("state_get",)


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(("word", "streams"), [("none", (False,)), ("streamed", (True,)), ("both", (False, True))])
def test_streaming_is_asked_for_in_the_words_of_the_form(word: str, streams: tuple[bool, ...]) -> None:
    assert asked(models="all", stream=word).request.streams == streams
