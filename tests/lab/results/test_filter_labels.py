"""Labels of the parameters of pages of results."""

from dataclasses import fields

import pytest

from toolbench.lab.results.filter_labels import find_filter_label
from toolbench.lab.results.trial_list.filter import TrialFilter

NOT_PARAMETERS = {"chosen", "layout", "ignored"}
SHARED_LABELS = {"demo", "imported", "run"}  # of the scope, and of one or more runs


def test_find_filter_label_labels_every_field_of_the_trial_list() -> None:
    names = {field.name for field in fields(TrialFilter)} - NOT_PARAMETERS
    assert [name for name in names if find_filter_label(name) == name] == []


def test_find_filter_label_tells_fields_of_the_trial_list_apart() -> None:
    names = sorted({field.name for field in fields(TrialFilter)} - NOT_PARAMETERS - SHARED_LABELS)
    labels = [find_filter_label(name) for name in names]
    assert [name for name, label in zip(names, labels, strict=True) if labels.count(label) > 1] == []


@pytest.mark.parametrize(
    ("name", "label"), [("a_run", "Baseline: Run"), ("b_day", "Side 2: Day"), ("model:", "model:"), ("upto", "Frozen")]
)
def test_find_filter_label_names_sides_and_keeps_other_texts(name: str, label: str) -> None:
    assert find_filter_label(name) == label
