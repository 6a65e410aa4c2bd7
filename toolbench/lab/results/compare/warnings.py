"""Warnings about a comparison, such as differences between the sides that are not the subject of the comparison."""

from datetime import datetime
from typing import Protocol

from toolbench.lab.engine_version import select_distinct_versions
from toolbench.lab.results.compare.matching import ComparisonCounts
from toolbench.lab.results.compare.sides import Side
from toolbench.lab.results.run_choices import ADDED_MANUALLY, MAX_TIME_BETWEEN_RUNS, RETRIED

MAX_CONCURRENCY_RATIO = 1.5  # of the sides' median numbers of trials in flight; a larger ratio gives a warning
# STRATUM_FIELDS whose differences explain different frozen settings
EXPLAINING_FIELDS = {"provider", "model", "profile", "strategy", "method", "examples", "streamed", "tool use"}

SIMULATED = "Simulated models with known success rates: this says nothing about real models."
FAR_APART = "Trials of the sides began more than an hour apart: the time of day may be part of the difference."
OVERLOADED = "Trials were measured while this machine was overloaded: their times are too long."


class TimeSpan(Protocol):
    """Group of trials with the starts of its first and its last trial, which are None if no start is known."""

    @property
    def first_start(self) -> datetime | None:
        """Return the start of the first trial."""

    @property
    def last_start(self) -> datetime | None:
        """Return the start of the last trial."""


def list_warnings(first: Side, second: Side, counts: ComparisonCounts) -> tuple[str, ...]:
    """Return the warnings as sentences, the most serious first."""
    both_have_trials = bool(first.trials and second.trials)
    applies_by_warning = {
        SIMULATED: first.simulated or second.simulated,
        FAR_APART: is_far_apart(first, second),
        _describe_concurrency(first, second): _has_different_concurrency(first, second),
        "Frozen settings differ, and none of the compared settings explains this.": both_have_trials
        and _has_unexplained_settings(first, second, counts),
        "The sides ran on different versions of the engine.": both_have_trials
        and select_distinct_versions(first.engine_versions) != select_distinct_versions(second.engine_versions),
        "Scenario versions differ: the tasks are not the same.": both_have_trials and "version" in counts.differing,
        "Some versions of scenarios are omitted, since the other side has other versions, which are different tasks: "
        f"{', '.join(counts.left_out_versions)}.": bool(counts.left_out_versions),
        OVERLOADED: bool(first.overloaded_trials or second.overloaded_trials),
        ADDED_MANUALLY: bool(first.manual_trials or second.manual_trials),
        RETRIED: bool(first.errors_retried or second.errors_retried),
        "A side used sequential stopping: rates, differences and p-values are anytime-valid, nothing is paired, "
        "and times are not corrected for it.": counts.sequential,
        "Different upstreams served the sides.": _has_different_upstreams(first, second),
        f"Scenarios or configurations that only one side has are omitted. Their number: {counts.left_out}.": bool(
            counts.left_out
        ),
    }
    return tuple(sentence for sentence, applies in applies_by_warning.items() if applies)


def is_far_apart(first: TimeSpan, second: TimeSpan) -> bool:
    """Return whether the first or the last trials of the sides started more than MAX_TIME_BETWEEN_RUNS apart.

    The result is False if no start is known for a side.
    """
    if not (first.first_start and second.first_start and first.last_start and second.last_start):
        return False
    apart = (abs(first.first_start - second.first_start), abs(first.last_start - second.last_start))
    return max(apart) > MAX_TIME_BETWEEN_RUNS


def _describe_concurrency(first: Side, second: Side) -> str:
    return (
        f"The sides ran at different concurrency (median {first.concurrency or 0:.0f} and "
        f"{second.concurrency or 0:.0f} trials at once): this may explain a difference in times, not one in success."
    )


def _has_different_concurrency(first: Side, second: Side) -> bool:
    if not first.concurrency or not second.concurrency:
        return False
    return max(first.concurrency, second.concurrency) > MAX_CONCURRENCY_RATIO * min(
        first.concurrency, second.concurrency
    )


def _has_unexplained_settings(first: Side, second: Side, counts: ComparisonCounts) -> bool:
    return first.policy_hashes != second.policy_hashes and not EXPLAINING_FIELDS.intersection(counts.differing)


def _has_different_upstreams(first: Side, second: Side) -> bool:
    return bool(first.upstreams and second.upstreams) and first.upstreams != second.upstreams
