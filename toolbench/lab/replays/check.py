"""Check that the stored bytes of a run lead to the stored verdicts again."""

from dataclasses import dataclass

from toolbench.evals.judging.verdict import NEW_CLASSES_BY_VERSION
from toolbench.lab.models import Trial
from toolbench.lab.replays.execute import ReplayedTrial, list_differences, read_judging_version, replay_trials

_DECISIVE_COLUMNS = ("outcome", "end", "task_pass", "parity_pass", "failure_class", "category")


@dataclass(frozen=True, slots=True)
class ReplayCheck:
    """Trials of a run replayed under their own settings.

    Attributes:
        same: same verdict and end; of trials judged by older rules, the same outcome, end and failure class.
        by_newer_rules: a line per trial whose verdict a newer version of the rules changes, by a class that it names.
        differing, unknown: a line per trial.
    """

    same: int
    never_sent: int
    by_newer_rules: tuple[str, ...]
    differing: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether no trial differs and none is unknown."""
        return not self.differing and not self.unknown

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        replayed = self.same + len(self.by_newer_rules) + len(self.differing) + len(self.unknown)
        newer = len(self.by_newer_rules)
        changed = f"{newer} change{'s' if newer == 1 else ''} by newer judging rules, " if newer else ""
        left_out = f"; {self.never_sent} were never sent" if self.never_sent else ""
        return (
            f"{self.same} of {replayed} replayed trials have the same verdict and end, {changed}"
            f"{len(self.differing)} differ, {len(self.unknown)} cannot be known{left_out}. No request was sent."
        )


def check_replay(run_id: int) -> ReplayCheck:
    """Replay all finished trials of the run. Call it in a thread without an event loop."""
    ids = Trial.objects.filter(run_id=run_id, state=Trial.State.DONE).order_by("position").values_list("pk", flat=True)
    same = never_sent = 0
    newer: list[str] = []
    differing: list[str] = []
    unknown: list[str] = []
    for replay_trial in replay_trials(ids):
        name = f"trial {replay_trial.trial.pk} ({replay_trial.trial.scenario})"
        if replay_trial.never_sent:
            never_sent += 1
        elif replay_trial.unknown_from is not None:
            unknown.append(f"{name}: unknown from step {replay_trial.unknown_from}: {replay_trial.why}.")
        elif not (changed := _list_changed_columns(replay_trial)):
            same += 1
        elif version := _find_rules_version(replay_trial):
            now = replay_trial.columns["failure_class"]
            newer.append(
                f"{name}: {replay_trial.trial.failure_class or 'pass'} → {now}, by version {version} of the rules."
            )
        else:
            differing.append(f"{name}: {', '.join(changed)} differ.")
    return ReplayCheck(same, never_sent, tuple(newer), tuple(differing), tuple(unknown))


def _list_changed_columns(replayed: ReplayedTrial) -> tuple[str, ...]:
    """Return the columns that differ.

    For a trial judged by older rules, only decisive columns count, since newer rules may use other words.
    """
    changed = list_differences(replayed)
    if _get_judging_version(replayed.trial) == read_judging_version(replayed.columns["verdict"]):
        return changed
    return tuple(name for name in changed if name in _DECISIVE_COLUMNS)


def _find_rules_version(replayed: ReplayedTrial) -> int:
    """Return the version of the judging rules that introduced the trial's new failure class; 0 if none did."""
    newer = range(_get_judging_version(replayed.trial) + 1, read_judging_version(replayed.columns["verdict"]) + 1)
    return next((v for v in newer if replayed.columns["failure_class"] in NEW_CLASSES_BY_VERSION.get(v, ())), 0)


def _get_judging_version(trial: Trial) -> int:
    return read_judging_version(trial.verdict)
