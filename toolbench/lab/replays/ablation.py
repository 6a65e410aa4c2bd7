"""Which transform or repair a verdict hangs on: the same replay with each of them left out, one at a time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from toolbench.engine.policy.policy import resolve
from toolbench.lab.models import Trial
from toolbench.lab.replays.execute import replay
from toolbench.lab.replays.what_if import UNKNOWN, Change, Totals, change_of, counted, totals
from toolbench.lab.replays.what_if_settings import WhatIf, transforms_of
from toolbench.lab.worker.trial_plan import frozen_configs

ALL = "all"


@dataclass(frozen=True, slots=True)
class Ablation:
    """The chosen settings without one transform or repair; `name` is ALL for none of them. `changed` are trials whose
    outcome is another one than under the settings as chosen; where either is not known they are `unsure`."""

    name: str
    totals: Totals
    changed: tuple[Change, ...]
    unsure: int


def transforms_in(trial_ids: Sequence[int], asked: WhatIf) -> tuple[str, ...]:
    """Every transform and repair that the settings apply in any configuration of these trials, in order."""
    configs = set(Trial.objects.filter(pk__in=trial_ids).values_list("config_id", flat=True))
    found: dict[str, None] = {}
    for _, config in sorted(frozen_configs(configs).items()):
        policy = resolve(asked.apply(config).layers).policy
        for names in transforms_of(policy).values():
            found.update(dict.fromkeys(names))
    return tuple(found)


def ablate(
    trial_ids: Sequence[int], asked: WhatIf, names: Iterable[str], chosen: Sequence[Change]
) -> tuple[Ablation, ...]:
    """One row for every name, then one without any. `chosen` is what the settings as chosen make of the trials. To be
    called in a thread without an event loop."""
    every = tuple(names)
    rows = [(name, (name,)) for name in every] + ([(ALL, every)] if len(every) > 1 else [])
    return tuple(_row(name, trial_ids, _less(asked, left_out), chosen) for name, left_out in rows)


def _less(asked: WhatIf, names: tuple[str, ...]) -> WhatIf:
    return replace(asked, without=(*asked.without, *names))


def _row(name: str, trial_ids: Sequence[int], asked: WhatIf, chosen: Sequence[Change]) -> Ablation:
    changes = tuple(change_of(one) for one in replay(trial_ids, asked.apply))
    before = {one.trial: one.after for one in chosen}
    other = [one for one in changes if one.after != before[one.trial]]
    sure = tuple(one for one in other if UNKNOWN not in (one.after, before[one.trial]))
    return Ablation(name, totals(counted(changes)), sure, unsure=len(other) - len(sure))
