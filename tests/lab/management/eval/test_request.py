"""Requests that `manage.py eval` builds from its options."""

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


def build_request(**options: Any) -> EvalRequest:
    return build_eval_request(EvalOptions(**options))


def list_model_names(request: EvalRequest) -> list[str]:
    return [model.name for model in request.models]


@pytest.mark.usefixtures("catalogue")
def test_build_eval_request_of_case_study_has_29_pairs_1450_trials() -> None:
    plan = build_plan(build_request(models="all", profiles=FULL_PROFILES, trials=10).request)
    assert len({(config.model, config.profile) for config in plan.configs}) == 29
    assert plan.trials == 1450
    assert next(render_plan_lines(plan)) == (
        "29 pairs of model and profile, 29 configurations, 145 cells, 1,450 trials"
    )


def test_render_plan_lines_names_providers_that_share_a_model_name() -> None:
    SamplingProfile.objects.get_or_create(name="default")
    for name in ("First", "Second"):
        make_model("agent", provider=make_provider(name))
    plan = build_plan(build_request(models="agent", profiles="default", trials=1).request)
    assert "agent at First and Second: --provider chooses one of them" in list(render_plan_lines(plan))


@pytest.mark.usefixtures("catalogue")
def test_build_eval_request_without_a_provider_uses_openrouter_only() -> None:
    assert {model.provider.name for model in build_request(models="all").models} == {"OpenRouter"}
    assert list_model_names(build_request(models="perfect", provider="simulated")) == ["perfect"]


@pytest.mark.usefixtures("catalogue")
def test_build_eval_request_chooses_stable_models_by_default() -> None:
    assert len(build_request().models) == 6


@pytest.mark.usefixtures("catalogue")
def test_build_eval_request_finds_models_by_name_vendor_tag_glob() -> None:
    make_model("acme/one:nitro", tags=["quick"])
    make_model("acme/two")
    make_model("other/three", tags=["quick"])
    assert list_model_names(build_request(models="acme/one", provider="example")) == ["acme/one:nitro"]
    assert list_model_names(build_request(models="acme", provider="example")) == ["acme/one:nitro", "acme/two"]
    assert list_model_names(build_request(models="quick,!acme", provider="example")) == ["other/three"]
    assert list_model_names(build_request(models="*/t*", provider="example")) == ["acme/two", "other/three"]


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize("words", ["Local, tool template", "local-tools"])
def test_build_eval_request_finds_a_provider_by_name_or_service(words: str) -> None:
    assert {model.provider.name for model in build_request(models="all", provider=words).models} == {
        "Local, tool template"
    }
    with pytest.raises(EvalError, match="“Local, own template”, “Local, tool template”"):
        build_request(models="all", provider="nowhere")


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"models": "nobody"}, "No model at OpenRouter matches 'nobody'"),
        ({"models": "perfect"}, "Simulated has one: add --provider."),
        ({"provider": "nowhere"}, "No provider matches 'nowhere'"),
        ({"profiles": "nothing"}, "No sampling profile matches 'nothing'"),
        ({"strategies": "nothing"}, "No strategy or preset matches 'nothing'"),
        ({"scenarios": "nothing"}, "No scenario matches 'nothing'"),
    ],
)
def test_build_eval_request_refuses_a_filter_without_a_match(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(EvalError, match=sentence.replace(".", r"\.")):
        build_request(**options)


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    ("options", "sentence"),
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
def test_build_eval_request_refuses_an_unknown_word_among_known(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(EvalError, match=re.escape(sentence)):
        build_request(**options)


@pytest.mark.usefixtures("catalogue")
def test_build_eval_request_accepts_a_bare_model_name_if_unique() -> None:
    make_model("acme/one:nitro")
    make_model("acme/two")
    make_model("other/two")
    assert list_model_names(build_request(models="one", provider="example")) == ["acme/one:nitro"]
    assert list_model_names(build_request(models="ONE:nitro,!acme/two", provider="example")) == ["acme/one:nitro"]
    with pytest.raises(EvalError, match=r"(?i)'TWO' may be “acme/two” or “other/two”: write"):
        build_request(models="TWO", provider="example")
    with pytest.raises(EvalError, match="'two' may be “acme/two” or “other/two”: write the whole name"):
        build_request(models="one,two", provider="example")


@pytest.mark.usefixtures("catalogue")
def test_build_eval_request_adds_presets_to_a_strategy() -> None:
    assert build_request(strategies="raw+ask_again,baseline").request.strategies == ("baseline", "raw+ask_again")


@pytest.mark.usefixtures("catalogue")
def test_build_eval_request_chooses_strategies_by_word_and_matrix() -> None:
    assert build_request(strategies="all").request.strategies == ("raw", "baseline", "production")
    assert build_request(strategies="base,deepseek_openrouter_compat").request.strategies == (
        "baseline",
        "deepseek_openrouter_compat",
    )
    assert build_request(strategies="raw,wire_standard").request.strategies == ("raw", "wire_standard")
    assert build_request(strategy_matrix=True).request.strategies == ("baseline", "production")
    assert build_request(fallback_matrix=True).request.strategies == (
        "production!content_tag_tool_call_fallback",
        "production+content_tag_tool_call_fallback",
    )


@pytest.mark.usefixtures("catalogue")
def test_build_eval_request_without_tools_uses_only_the_control() -> None:
    assert build_request(tool_use_mode="disabled").request.scenarios == ("chat_only",)


@pytest.mark.usefixtures("catalogue")
def test_build_eval_request_merges_settings_with_overrides_last() -> None:
    request = build_request(
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
def test_build_eval_request_refuses_routing_outside_openrouter() -> None:
    make_model("acme/one", provider=make_provider("Acme"))
    with pytest.raises(EvalError, match="apply to OpenRouter only"):
        build_request(models="all", provider="acme", route="fallback")


@pytest.mark.usefixtures("catalogue")
def test_build_eval_request_all_tools_sets_no_allowlist() -> None:
    assert build_request(allow=("all",)).request.tool_allowlist == ()
    assert build_request(allow=("state_get",)).request.tool_allowlist == ("state_get",)


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(("word", "streams"), [("none", (False,)), ("streamed", (True,)), ("both", (False, True))])
def test_build_eval_request_reads_the_words_for_streaming(word: str, streams: tuple[bool, ...]) -> None:
    assert build_request(models="all", stream=word).request.streams == streams
