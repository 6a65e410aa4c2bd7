"""Ablation: replays that omit one transform or repair, or all, to show which verdicts depend on them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from toolbench.engine.policy.settings import resolve_policy
from toolbench.lab.models import Trial
from toolbench.lab.replays.stored_trials import replay_trials
from toolbench.lab.replays.what_if import (
    UNKNOWN,
    ChangeTotals,
    TrialChange,
    build_change,
    compute_totals,
    count_changes,
)
from toolbench.lab.replays.what_if_settings import WhatIfSettings, list_policy_transforms
from toolbench.lab.worker.trial_plan import load_frozen_configs

ALL_TRANSFORMS = "all"


@dataclass(frozen=True, slots=True)
class Ablation:
    """The result of a replay that omits one transform or repair, or all of them.

    Attributes:
        name: the omitted transform or repair; ALL_TRANSFORMS if all are omitted.
        totals: totals of this replay, compared with the stored verdicts.
        changed: the trials whose outcome differs from that of the replay that omits none, if both outcomes are known;
            `before` is the stored outcome.
        unsure: number of trials whose outcome is unknown in exactly one of these two replays.
    """

    name: str
    totals: ChangeTotals
    changed: tuple[TrialChange, ...]
    unsure: int


def list_transforms(trial_ids: Sequence[int], settings: WhatIfSettings) -> tuple[str, ...]:
    """Return the transforms and repairs that any configuration of these trials applies under the settings.

    Raises:
        PolicyError: the settings contradict each other.
    """
    configs = set(Trial.objects.filter(pk__in=trial_ids).values_list("config_id", flat=True))
    names: dict[str, None] = {}
    for _, config in sorted(load_frozen_configs(configs).items()):
        policy = resolve_policy(settings.apply(config).layers).policy
        for policy_names in list_policy_transforms(policy).values():
            names.update(dict.fromkeys(policy_names))
    return tuple(names)


def run_ablation(
    trial_ids: Sequence[int], settings: WhatIfSettings, names: Iterable[str], changes: Sequence[TrialChange]
) -> tuple[Ablation, ...]:
    """Return one result for each name and, for several names, one with all of them omitted.

    Must not be called from a running event loop.

    Args:
        trial_ids: the trials.
        settings: the settings to which each omission is added.
        names: transforms and repairs to omit.
        changes: the changes of these trials under `settings`, without an omission.

    Raises:
        PolicyError: the settings contradict each other.
    """
    all_names = tuple(names)
    rows = [(name, (name,)) for name in all_names] + ([(ALL_TRANSFORMS, all_names)] if len(all_names) > 1 else [])
    return tuple(
        _build_ablation(name, trial_ids, replace(settings, without=(*settings.without, *omitted)), changes)
        for name, omitted in rows
    )


def _build_ablation(
    name: str, trial_ids: Sequence[int], settings: WhatIfSettings, changes_before: Sequence[TrialChange]
) -> Ablation:
    """Replay the trials and return the result.

    Args:
        name: the name of the result.
        trial_ids: the trials.
        settings: the settings with the omissions.
        changes_before: the changes of these trials in the replay that omits none.
    """
    changes = tuple(build_change(replayed) for replayed in replay_trials(trial_ids, settings.apply))
    outcomes = {change.trial: change.after for change in changes_before}
    # A trial that ended after the replay that omits none has no outcome to differ from.
    differing = [change for change in changes if change.after != outcomes.get(change.trial, change.after)]
    changed = tuple(change for change in differing if UNKNOWN not in (change.after, outcomes[change.trial]))
    return Ablation(name, compute_totals(count_changes(changes)), changed, unsure=len(differing) - len(changed))
