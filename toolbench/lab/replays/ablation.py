"""Ablation: the same replay with each transform or repair left out in turn, to see which verdicts depend on it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from toolbench.engine.policy.settings import resolve_policy
from toolbench.lab.models import Trial
from toolbench.lab.replays.execute import replay_trials
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
    """The result of a replay without one transform or repair.

    Attributes:
        name: the omitted transform or repair; ALL_TRANSFORMS if all are left out.
        changed: trials whose outcome differs from that under the chosen settings.
        unsure: number of trials whose outcome is unknown with or without it.
    """

    name: str
    totals: ChangeTotals
    changed: tuple[TrialChange, ...]
    unsure: int


def list_transforms(trial_ids: Sequence[int], settings: WhatIfSettings) -> tuple[str, ...]:
    """Return the transforms and repairs that the settings apply in any configuration of these trials, in order."""
    configs = set(Trial.objects.filter(pk__in=trial_ids).values_list("config_id", flat=True))
    found: dict[str, None] = {}
    for _, config in sorted(load_frozen_configs(configs).items()):
        policy = resolve_policy(settings.apply(config).layers).policy
        for names in list_policy_transforms(policy).values():
            found.update(dict.fromkeys(names))
    return tuple(found)


def run_ablation(
    trial_ids: Sequence[int], settings: WhatIfSettings, names: Iterable[str], chosen: Sequence[TrialChange]
) -> tuple[Ablation, ...]:
    """Return one result for each name, then one with all of them left out. Call it in a thread without an event loop.

    Args:
        trial_ids: the trials.
        settings: the chosen settings.
        names: transforms and repairs to leave out.
        chosen: the changes under the chosen settings.
    """
    all_names = tuple(names)
    rows = [(name, (name,)) for name in all_names] + ([(ALL_TRANSFORMS, all_names)] if len(all_names) > 1 else [])
    return tuple(_build_ablation(name, trial_ids, _leave_out(settings, left_out), chosen) for name, left_out in rows)


def _leave_out(settings: WhatIfSettings, names: tuple[str, ...]) -> WhatIfSettings:
    return replace(settings, without=(*settings.without, *names))


def _build_ablation(
    name: str, trial_ids: Sequence[int], settings: WhatIfSettings, chosen: Sequence[TrialChange]
) -> Ablation:
    changes = tuple(build_change(replay_trial) for replay_trial in replay_trials(trial_ids, settings.apply))
    before = {change.trial: change.after for change in chosen}
    differing = [change for change in changes if change.after != before[change.trial]]
    sure = tuple(change for change in differing if UNKNOWN not in (change.after, before[change.trial]))
    return Ablation(name, compute_totals(count_changes(changes)), sure, unsure=len(differing) - len(sure))
