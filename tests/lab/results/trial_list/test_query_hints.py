"""Advice for terms of the query bar that do not filter."""

import pytest

from toolbench.lab.results.trial_list.query_hints import list_query_hints


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("model=glm", "“model=glm” is searched as text; write model:glm to filter."),
        ('model="glm 4"', '“model="glm 4"” is searched as text; write model:"glm 4" to filter.'),
        ("Model>glm", "“Model>glm” is searched as text; write model:glm to filter."),
        ("ms=>5", "“ms=>5” is searched as text; write ms>=5 to filter."),
        ("ms==5", "“ms==5” is searched as text; write ms:5 to filter."),
        ("Model:glm", "“Model:glm” is searched as text; write model:glm to filter."),
        ("time>5s", "“time>5s” is searched as text; the filter is ms>5000 for more than 5 s."),
        ("status:429", "“status:429” is searched as text; the filter is outcome:."),
        ("foo:bar", "“foo:bar” is searched as text; there is no filter foo."),
        (
            "outcome:wrong",
            "The filter outcome takes one of pass, fail, infra, na, cancelled, running, queued after a colon.",
        ),
        (
            "outcome>fail",
            "The filter outcome takes one of pass, fail, infra, na, cancelled, running, queued after a colon.",
        ),
        ("ms>abc", "The filter ms takes a number, such as ms>5."),
        ("run:last", "The filter run takes the number of a run after a colon."),
        ("human:no", "The filter human takes one of wrong, right, any after a colon."),
        ("model>glm", "The filter model takes a text after a colon, such as model:text."),
        ('"ab"', "“ab” is ignored: a search needs a letter or a digit, and in quotes 3 characters or more."),
        ("started>soon", "The filter started takes a time such as started>2h, or a day such as started:2026-11-20."),
    ],
)
def test_list_query_hints_says_what_to_write(text: str, advice: str) -> None:
    assert list_query_hints(f"lost {text} words") == (advice,)


def test_list_query_hints_says_that_text_without_words_is_ignored() -> None:
    (hint,) = list_query_hints("ms>5 & !")
    assert hint.startswith("“& !” is ignored")


@pytest.mark.parametrize(
    "text",
    [
        *("", "model:glm ms>5", "lost words", "http://x", "a = b", "note: lost"),
        *('"foo:bar"', '"say model=glm now"', '"model is time>5s'),
    ],
)
def test_list_query_hints_of_filters_and_plain_text_is_empty(text: str) -> None:
    assert list_query_hints(text) == ()
