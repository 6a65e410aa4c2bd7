"""Request parameters that a model refused in a run.

The transaction that stores the steps which show the refusal also stores the parameters. They are read with every
claim. A trial that starts later in the same worker session sends its requests without the parameter. In other sessions,
this applies to trials that are claimed after the step was stored. A trial that has already sent its first request with
the parameter sends this request again without it, once.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from toolbench.engine.events import OmittedParameter
from toolbench.engine.types import JsonObject
from toolbench.lab.models import RefusedParameter
from toolbench.lab.sql import load_statement
from toolbench.lab.traces.step_facts import to_column_text
from toolbench.lab.traces.trial_columns import AnyStep
from toolbench.lab.worker import database_thread
from toolbench.lab.worker.claims import ClaimedTrial
from toolbench.lab.worker.trial_plan import FrozenConfig
from toolbench.providers.driver.step_records import ExchangeStep

_STORE_REFUSED = load_statement("worker/store_refused")


class SessionRefusals:
    """Refused parameters that the trials of one worker session have met, whether they are stored yet or not."""

    def __init__(self) -> None:
        self._by_model: dict[tuple[int, str], dict[str, OmittedParameter]] = defaultdict(dict)

    def add_step(self, trial: ClaimedTrial, model_name: str, step: AnyStep) -> None:
        """Remember the parameters that a step shows to be refused."""
        for parameter in _find_refused(step):
            self._by_model[trial.run_id, model_name][parameter.name] = replace(parameter, was_omitted_from_start=True)

    def add_to_trial(self, trial: ClaimedTrial, model_name: str) -> ClaimedTrial:
        """Add to a trial the parameters that its model refused in its run during this session, and return the trial."""
        session_parameters = self._by_model.get((trial.run_id, model_name))
        if session_parameters is None:
            return trial
        by_name = {parameter.name: parameter for parameter in (*session_parameters.values(), *trial.omitted_parameters)}
        return replace(trial, omitted_parameters=tuple(by_name.values()))


def _find_refused(step: AnyStep) -> Iterator[OmittedParameter]:
    """Yield the parameters that a step shows to be refused: the model answered after they were omitted."""
    if isinstance(step, ExchangeStep) and step.turn_read is not None:
        yield from (parameter for parameter in step.request.omitted_parameters if not parameter.was_omitted_from_start)


def build_refused_rows(steps: Iterable[tuple[int, AnyStep]]) -> Iterator[JsonObject]:
    """Yield rows of refused parameters for `store_refused`.

    Args:
        steps: pairs of a trial id and a step.
    """
    for trial_id, step in steps:
        for parameter in _find_refused(step):
            yield {"trial_id": trial_id, "name": parameter.name, "why": to_column_text(parameter.reason)}


def store_refused(refused_rows: Iterable[JsonObject]) -> None:
    """Store refused parameters, each once for a run, provider and model.

    Call it in the transaction that stores the steps.

    Args:
        refused_rows: rows of `build_refused_rows`.
    """
    if rows := list(refused_rows):
        database_thread.open_cursor().execute(_STORE_REFUSED, [json.dumps(rows)])


def add_refused(
    trials: Sequence[ClaimedTrial], provider_id: int, configs: Mapping[int, FrozenConfig]
) -> tuple[ClaimedTrial, ...]:
    """Return the trials with the parameters that their models refused in their runs.

    The call takes one query, or none without trials.
    """
    if not trials:
        return ()
    run_ids = {trial.run_id for trial in trials}
    refused: dict[tuple[int, str], list[OmittedParameter]] = defaultdict(list)
    for row in RefusedParameter.objects.filter(run__in=run_ids, provider=provider_id):
        refused[row.run_id, row.model_name].append(OmittedParameter(row.name, row.why))
    if not refused:
        return tuple(trials)
    model_names = {
        trial.config_id: configs[trial.config_id].model_name for trial in trials if trial.config_id in configs
    }
    return tuple(
        replace(trial, omitted_parameters=tuple(refused[trial.run_id, model_names.get(trial.config_id, "")]))
        for trial in trials
    )
