"""Tests of the case study's filter words."""

import pytest

from toolbench.evals.catalogue import STRATEGIES, load_models, load_profiles
from toolbench.evals.name_filter import filter_by_names, find_similar_words, list_unmatched_words


def filter_models(words: str) -> list[str]:
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
def test_filter_by_names_selects_models_by_words(words: str, count: int) -> None:
    assert len(filter_models(words)) == count


def test_filter_by_names_keeps_the_order_of_the_catalogue() -> None:
    assert filter_models("kimi,grok") == ["x-ai/grok-4.1-fast", "moonshotai/kimi-k2.5:nitro"]


def test_filter_by_names_selects_profiles_and_strategies() -> None:
    assert [item.name for item in filter_by_names(load_profiles(), "flash", names=lambda entry: entry.names)] == [
        "glm_4_7_flash_general",
        "glm_4_7_flash_tool_calling",
    ]
    assert [item.name for item in filter_by_names(STRATEGIES, "naked,prod", names=lambda entry: entry.names)] == [
        "raw",
        "production",
    ]
    assert [item.name for item in filter_by_names(STRATEGIES, "all", names=lambda entry: entry.names)] == [
        "raw", "baseline", "production",
    ]  # fmt: skip


def test_list_unmatched_words_names_words_without_match() -> None:
    assert list_unmatched_words(load_models(), "stable,nobody,!nothing", names=lambda model: model.names) == [
        "nobody",
        "!nothing",
    ]


def test_list_unmatched_words_ignores_space_after_exclusion_mark() -> None:
    items = ["a", "b", "c, d"]
    assert filter_by_names(items, "! a,! c, d", names=lambda item: [item]) == ["b"]
    assert list_unmatched_words(items, "! a,! c, d,! e", names=lambda item: [item]) == ["!e"]


def test_filter_by_names_takes_brackets_literally() -> None:
    assert filter_by_names(["a[1]x", "a1x"], "a[1]*", names=lambda item: [item]) == ["a[1]x"]


@pytest.mark.parametrize(
    ("words", "selected"),
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
def test_filter_by_names_matches_a_whole_name_with_comma(words: str, selected: str) -> None:
    names_by_item = {
        "own": ("Local, own template", "local"),
        "tools": ("Local, tool template", "local"),
        "other": ("other",),
    }
    assert filter_by_names(tuple(names_by_item), words, names=names_by_item.__getitem__) == [
        item for item in names_by_item if item in selected.split()
    ]


def test_find_similar_words_returns_the_most_similar_ones() -> None:
    known = ["Openai", "openai/gpt-5.2", "stable", "default"]
    assert find_similar_words("openai/gpt5.2", known) == ("openai/gpt-5.2", "Openai")
    assert find_similar_words("opnai/typo", known) == ("Openai",)
    assert find_similar_words("!Stabel", known) == ("stable",)
    assert find_similar_words("zzz", known) == ()
    assert find_similar_words("", known) == ()
