"""New trials of measured configurations: the same settings on new instances and seeds."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef
from django.db.models.functions import JSONArray

from toolbench.lab.models import Cell, Run, RunConfig
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.run_request import ConfigChoice, LaunchError, RunRequest


class NewTrialsError(Exception):
    """Error for new trials that cannot be planned or whose result cannot be saved; the message is for users."""


@dataclass(frozen=True, slots=True)
class NewTrialsRequest:
    """Configurations and scenarios of new trials.

    Attributes:
        config_ids: primary keys of the configurations to try again.
        policy_hashes: hashes of the measured frozen settings, in the order of the configurations.
        scenarios: slugs.
        trials: number of trials of each configuration in each scenario.
    """

    config_ids: tuple[int, ...]
    policy_hashes: tuple[str, ...]
    scenarios: tuple[str, ...]
    trials: int


def build_new_trials_request(trials_request: NewTrialsRequest, *, title: str, purpose: str) -> RunRequest:
    """Return the request of a run of new trials, with a new seed.

    The run does not use sequential stopping. All other settings that are not in `trials_request` are those of the run
    of the first configuration.

    Args:
        trials_request: what to try.
        title: title of the run, which is truncated to 200 characters.
        purpose: `Run.purpose` of the run.

    Raises:
        NewTrialsError: a configuration does not exist, has no model here or is of the playground, the configurations
            cannot be in one run, the stored request of the first configuration's run cannot be read, the new run cannot
            be planned, or its settings or tasks would differ from the measured ones.
    """
    cells = Cell.objects.filter(config=OuterRef("pk")).order_by().values(pair=JSONArray("scenario", "scenario_version"))
    measured_configs = RunConfig.objects.select_related("run").annotate(tried_versions=ArraySubquery(cells))
    configs_by_id = measured_configs.in_bulk(trials_request.config_ids)
    configs = [config for pk in trials_request.config_ids if (config := configs_by_id.get(pk)) and config.model_id]
    _check_configs(configs, len(trials_request.config_ids))
    first = configs[0]
    try:
        stored_request = RunRequest.from_json(first.run.request)
    except LaunchError as unreadable:
        raise NewTrialsError(f"The request of run {first.run_id} cannot be read: {unreadable}") from unreadable
    request = replace(
        stored_request,
        title=title[:200],
        configs=tuple(_build_config_choice(config) for config in configs),
        scenarios=trials_request.scenarios,
        trials=trials_request.trials,
        tool_use_mode=first.tool_use_mode,
        instance_kind=first.run.instance_kind,
        seed=None,
        until={},
        purpose=purpose,
    )
    tried_versions = {(scenario, version) for config in configs for scenario, version in config.tried_versions}
    _check_plan(request, trials_request.policy_hashes, tried_versions)
    return request


def _check_configs(configs: Sequence[RunConfig], count: int) -> None:
    """Check that there are `count` configurations, and that one new run can try all of them.

    Raises:
        NewTrialsError: a configuration is missing or of the playground, or one run cannot try all of them.
    """
    if len(configs) != count:
        raise NewTrialsError(
            "This configuration cannot be tried again: its model was deleted, or its run was imported from elsewhere."
        )
    if any(config.run.purpose == Run.PLAYGROUND for config in configs):
        raise NewTrialsError(
            "Results leave out runs of the playground. Save the conversation as a test case, run it and decide on that "
            "run."
        )
    if len({(config.tool_use_mode, config.run.instance_kind) for config in configs}) > 1:
        raise NewTrialsError(
            "These configurations differ in tool-use mode or instance kind, so one run cannot try all of them. Start a "
            "run for each and decide again."
        )


def _build_config_choice(config: RunConfig) -> ConfigChoice:
    return ConfigChoice(
        config.model_id or 0, config.profile, config.strategy, config.method, config.examples, config.stream
    )


def _check_plan(request: RunRequest, policy_hashes: tuple[str, ...], tried_versions: Set[tuple[str, int]]) -> None:
    """Check that the request tries the measured settings and scenario versions.

    Args:
        request: the request of the new trials.
        policy_hashes: hashes of the measured frozen settings, in the order of the configurations.
        tried_versions: (scenario, version) of each cell of the configurations.

    Raises:
        NewTrialsError: the request cannot be planned, or it would try other settings or newer scenario versions.
    """
    try:
        plan = build_plan(request)
    except LaunchError as refused:
        raise NewTrialsError(f"The run cannot be planned: {refused}") from refused
    planned_hashes = tuple(config.policy_hash for config in plan.configs)
    if planned_hashes != policy_hashes:
        raise NewTrialsError(
            "A preset, a profile, the provider or a capability of the model has changed, so other settings would be "
            "tried. Start a new run and decide again."
        )
    tried_scenarios = {scenario for scenario, _ in tried_versions}
    planned = {(cell.scenario, cell.scenario_version) for cell in plan.cells if cell.scenario in tried_scenarios}
    if newer := sorted({scenario for scenario, _ in planned - tried_versions}):
        raise NewTrialsError(
            f"There is a newer version of {', '.join(newer)}, which is another task. Start a new run and decide again."
        )
