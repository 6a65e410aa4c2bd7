"""The case study's columns."""

from collections import Counter

from toolbench.lab.results.matrix.case_study import CaseStudyFigures


def test_case_study_figures_list_most_frequent_failures_first() -> None:
    scenarios, categories = Counter({"b": 2, "a": 2, "c": 1}), Counter({"NO_CALL": 4, "SCHEMA": 1})
    figures = CaseStudyFigures(5, 10, 3, 4, 12.5, scenarios, categories)

    assert figures.list_values() == ("5/10", "50.0%", "3/4", 13, "a x2; b x2; NO_CALL x4")


def test_case_study_figures_without_trials_are_unknown() -> None:
    assert CaseStudyFigures(0, 0, 0, 0, None).list_values() == ("0/0", None, None, None, "-")
