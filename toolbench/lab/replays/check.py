"""Check that a replay of a run gives the stored verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.evals.judging.verdict import CASE_STUDY_RULE_VERSIONS, NEW_CLASSES_BY_VERSION
from toolbench.lab.models import Trial
from toolbench.lab.replays.stored_trials import ReplayedTrial, list_differences, read_judging_version, replay_trials

_CASE_STUDY_COLUMNS = ("parity_pass", "category")
_DECISIVE_COLUMNS = ("outcome", "end", "task_pass", "failure_class", *_CASE_STUDY_COLUMNS)


@dataclass(frozen=True, slots=True)
class ReplayCheck:
    """Result of replaying the trials of a run under their own settings.

    Attributes:
        same: number of trials with the stored verdict and end. For trials judged by another version of the rules, only
            the decisive columns are compared.
        not_replayable: number of trials that sent no request, were ended without a verdict, or lost their bodies.
        by_newer_rules: one sentence for each trial whose verdict differs because of newer judging rules, as far as
            `_find_rules_version` can tell.
        differing: one sentence for each other trial whose verdict or end differs.
        unknown: one sentence for each trial whose replay stopped early.
    """

    same: int
    not_replayable: int
    by_newer_rules: tuple[str, ...]
    differing: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether no trial differs and none is unknown."""
        return not self.differing and not self.unknown

    @property
    def sentence(self) -> str:
        """The numbers in words, and that no request was sent."""
        replayed = self.same + len(self.by_newer_rules) + len(self.differing) + len(self.unknown)
        newer = len(self.by_newer_rules)
        changed = f"{newer} change{'s' if newer == 1 else ''} by newer judging rules, " if newer else ""
        left_out = f"; {self.not_replayable} cannot be replayed" if self.not_replayable else ""
        return (
            f"{self.same} of {replayed} replayed trials have the same verdict and end, {changed}"
            f"{len(self.differing)} differ, {len(self.unknown)} are unknown{left_out}. No request was sent."
        )


def check_replay(run_id: int) -> ReplayCheck:
    """Replay all finished trials of the run and compare them with the stored verdicts.

    Must not be called from a running event loop.
    """
    ids = Trial.objects.filter(run_id=run_id, state=Trial.State.DONE).order_by("position").values_list("pk", flat=True)
    same = not_replayable = 0
    by_newer_rules: list[str] = []
    differing: list[str] = []
    unknown: list[str] = []
    for replayed in replay_trials(ids):
        name = f"trial {replayed.trial.pk} ({replayed.trial.scenario})"
        if replayed.is_not_replayable:
            not_replayable += 1
        elif replayed.unknown_from is not None:
            unknown.append(f"{name}: unknown from step {replayed.unknown_from}: {replayed.reason}.")
        elif not (changed := _list_changed_columns(replayed)):
            same += 1
        elif version := _find_rules_version(replayed, changed):
            before, after = replayed.trial.failure_class or "pass", replayed.columns["failure_class"] or "pass"
            change = f"{before} → {after}" if after != before else f"{', '.join(changed)} changed"
            by_newer_rules.append(f"{name}: {change}, by version {version} of the rules.")
        else:
            differing.append(f"{name}: {', '.join(changed)} differ.")
    return ReplayCheck(same, not_replayable, tuple(by_newer_rules), tuple(differing), tuple(unknown))


def _list_changed_columns(replayed: ReplayedTrial) -> tuple[str, ...]:
    """Return the columns that differ.

    For a trial judged by another version of the rules, only decisive columns are compared, since sentences may be
    worded differently.
    """
    changed = list_differences(replayed)
    if read_judging_version(replayed.trial.verdict) == read_judging_version(replayed.columns["verdict"]):
        return changed
    return tuple(name for name in changed if name in _DECISIVE_COLUMNS)


def _find_rules_version(replayed: ReplayedTrial, changed: Sequence[str]) -> int:
    """Return the version of the judging rules that explains the changed columns.

    A changed failure class is explained by a version that may change verdicts to the new class or to a pass. A change
    of nothing but columns of the case study rule is explained by a version that changed this rule.

    Returns:
        The first such version after that of the stored verdict; 0 if there is none.
    """
    stored, current = read_judging_version(replayed.trial.verdict), read_judging_version(replayed.columns["verdict"])
    failure_class, versions = replayed.columns["failure_class"], range(stored + 1, current + 1)
    if failure_class == replayed.trial.failure_class:
        is_explained = set(changed) <= set(_CASE_STUDY_COLUMNS)
        return next((version for version in versions if is_explained and version in CASE_STUDY_RULE_VERSIONS), 0)
    return next((version for version in versions if failure_class in NEW_CLASSES_BY_VERSION.get(version, ())), 0)
