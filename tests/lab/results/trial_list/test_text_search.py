"""Text search: words match beginnings, quoted texts match parts."""

import pytest

from tests.factories import make_cell, make_config, make_model, make_run, make_step, make_trial
from toolbench.lab.results.trial_list.filter import TrialFilter, filter_trials
from toolbench.lab.traces.search_text import update_search_texts

pytestmark = pytest.mark.django_db


@pytest.fixture
def trial_names() -> dict[int, str]:
    """Make two failed trials: `bern` called with {"city": "Bern"}, `path` has a sentence about /draft/note_1."""
    cell = make_cell(make_config(make_run(), make_model("vendor/Model-X")))
    bern, path = make_trial(cell, "fail", sentence="wrong city"), make_trial(cell, "fail", sentence="no /draft/note_1")
    make_step(bern, kind="tool", ordinal=2, tool_name="get_weather", bodies={"request": b'{"city": "Bern"}'})
    update_search_texts()
    return {bern.pk: "bern", path.pk: "path"}


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("bern", "bern"),
        ("WEATH city", "bern"),
        ("get_weather", "bern"),
        ("note", "path"),
        ("/draft/note_1", "path"),
        ("wrong note", ""),
        ("ern", ""),
        ('"ity": "Ber"', "bern"),
        ('"ft/note_"', "path"),
        ('"/draft" city', ""),
        ("model-x", "bern path"),
        ('"unclosed', ""),
        ("& | ! :* '; <->", "bern path"),
        ('""', "bern path"),
        ("%", "bern path"),
        ('"100%"', ""),
        ("北京", ""),
    ],
)
def test_trial_filter_search_finds_words_and_quoted_parts(trial_names: dict[int, str], search: str, found: str) -> None:
    trials = filter_trials(TrialFilter(search=search))
    assert sorted(trial_names[trial.pk] for trial in trials) == found.split()


def test_trial_filter_search_combines_with_other_filters(trial_names: dict[int, str]) -> None:
    assert filter_trials(TrialFilter(search="bern", model="vendor/Model-X", outcome="fail")).count() == 1
    assert filter_trials(TrialFilter(search="bern", outcome="pass")).count() == 0
