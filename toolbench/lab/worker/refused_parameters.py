"""What a run has learnt of refused parameters: kept with the steps that showed it, read with every claim.

A trial that starts after such a step, in the same worker session, sends its first request without the parameter; in
any other, once the step is stored. Trials that have sent theirs by then ask again themselves, each once."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from toolbench.engine.events import OmittedParameter
from toolbench.engine.types import JsonObject
from toolbench.lab.models import RefusedParameter
from toolbench.lab.sql import statement
from toolbench.lab.traces.step_facts import to_column_text
from toolbench.lab.traces.trial_columns import AnyStep
from toolbench.lab.worker import pipeline
from toolbench.lab.worker.claims import ClaimedTrial
from toolbench.lab.worker.trial_plan import FrozenConfig
from toolbench.providers.driver.step_records import ExchangeStep

_STORE_REFUSED = statement("worker/store_refused")


class SessionRefusals:
    """What the trials of one worker session have learnt, before it is stored."""

    def __init__(self) -> None:
        self._by_model: dict[tuple[int, str], dict[str, OmittedParameter]] = defaultdict(dict)

    def add_step(self, trial: ClaimedTrial, model_name: str, step: AnyStep) -> None:
        """Take up what a step shows to be refused."""
        for one in _find_refused(step):
            self._by_model[trial.run_id, model_name][one.name] = replace(one, known=True)

    def add_to_trial(self, trial: ClaimedTrial, model_name: str) -> ClaimedTrial:
        """Return the trial with all that is known now."""
        learnt = self._by_model.get((trial.run_id, model_name), {})
        by_name = {one.name: one for one in (*learnt.values(), *trial.left_out)}
        return replace(trial, left_out=tuple(by_name.values()))


def _find_refused(step: AnyStep) -> Iterator[OmittedParameter]:
    """Yield what a step shows to be refused: an answer came once it was left out."""
    if isinstance(step, ExchangeStep) and step.turn_read is not None:
        yield from (one for one in step.request.left_out if not one.known)


def build_refused_rows(steps: Iterable[tuple[int, AnyStep]]) -> Iterator[JsonObject]:
    """Yield rows of what trials found to be refused, from their steps by trial."""
    for trial_id, step in steps:
        for one in _find_refused(step):
            yield {"trial_id": trial_id, "name": one.name, "why": to_column_text(one.why)}


def store_refused(learnt: Iterable[JsonObject]) -> None:
    """Store what was learnt, each parameter once for a model of a run. To be called in the steps' transaction."""
    if rows := list(learnt):
        pipeline.open_cursor().execute(_STORE_REFUSED, [json.dumps(rows)])


def add_refused(
    trials: Sequence[ClaimedTrial], provider_id: int, configs: Mapping[int, FrozenConfig]
) -> tuple[ClaimedTrial, ...]:
    """Return the trials with what their runs know by now. One query where there are trials."""
    if not trials:
        return ()
    runs = {trial.run_id for trial in trials}
    known: dict[tuple[int, str], list[OmittedParameter]] = defaultdict(list)
    for row in RefusedParameter.objects.filter(run__in=runs, provider=provider_id):
        known[row.run_id, row.model_name].append(OmittedParameter(row.name, row.why))
    names = {trial.config_id: configs[trial.config_id].model_name for trial in trials if trial.config_id in configs}
    return tuple(
        replace(trial, left_out=tuple(known.get((trial.run_id, names.get(trial.config_id, "")), ())))
        for trial in trials
    )
