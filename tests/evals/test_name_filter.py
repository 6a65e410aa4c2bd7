"""Tests of the case study's filter words."""

import pytest

from toolbench.evals.catalogue import STRATEGIES, load_models, load_profiles
from toolbench.evals.name_filter import filter_by_names, find_similar_words, list_unmatched_words


def models_by(words: str) -> list[str]:
    return [model.name for model in filter_by_names(load_models(), words, names=lambda model: model.names)]


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("stable", 6),
        ("all", 17),
        ("FULL", 17),
        ("*", 17),
        ("deepseek", 2),
        ("qwen,glm", 5),
        ("qwen*", 3),
        ("*-preview*", 2),
        ("all,!google", 14),
        ("!google, !qwen", 11),
        ("google,!stable", 2),
        ("openai/gpt-5.2", 1),
        ("OpenAI/GPT-5.2:nitro", 1),
        ("gpt-5.2", 0),
        ("", 0),
        (" , ", 0),
        ("nobody", 0),
    ],
)
def test_words_choose_models(words: str, count: int) -> None:
    assert len(models_by(words)) == count


def test_the_order_is_that_of_the_catalogue() -> None:
    assert models_by("kimi,grok") == ["x-ai/grok-4.1-fast", "moonshotai/kimi-k2.5:nitro"]


def test_profiles_and_strategies_take_the_same_words() -> None:
    assert [item.name for item in filter_by_names(load_profiles(), "flash", names=lambda one: one.names)] == [
        "glm_4_7_flash_general",
        "glm_4_7_flash_tool_calling",
    ]
    assert [item.name for item in filter_by_names(STRATEGIES, "naked,prod", names=lambda one: one.names)] == [
        "raw",
        "production",
    ]
    assert [item.name for item in filter_by_names(STRATEGIES, "all", names=lambda one: one.names)] == [
        "raw", "baseline", "production",
    ]  # fmt: skip


def test_words_that_match_nothing_can_be_named() -> None:
    assert list_unmatched_words(load_models(), "stable,nobody,!nothing", names=lambda model: model.names) == [
        "nobody",
        "!nothing",
    ]


def test_brackets_are_no_pattern() -> None:
    assert filter_by_names(["a[1]x", "a1x"], "a[1]*", names=lambda item: [item]) == ["a[1]x"]


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ("Local, tool template", "tools"),
        ("local,tool template", "tools"),
        ("other, Local, own template", "own other"),
        ("all,!Local, tool template", "own other"),
        ("local", "own tools"),
        ("Local, nobody's", "own tools"),
        ("*template", "own tools"),
    ],
)
def test_a_name_with_a_comma_is_taken_whole(words: str, chosen: str) -> None:
    named = {"own": ("Local, own template", "local"), "tools": ("Local, tool template", "local"), "other": ("other",)}
    assert filter_by_names(tuple(named), words, names=named.__getitem__) == [
        item for item in named if item in chosen.split()
    ]


def test_nearest_words_are_those_most_alike() -> None:
    known = ["Openai", "openai/gpt-5.2", "stable", "default"]
    assert find_similar_words("openai/gpt5.2", known) == ("openai/gpt-5.2", "Openai")
    assert find_similar_words("opnai/typo", known) == ("Openai",)
    assert find_similar_words("!Stabel", known) == ("stable",)
    assert find_similar_words("zzz", known) == ()
    assert find_similar_words("", known) == ()
