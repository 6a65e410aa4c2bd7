"""New trials of measured configurations: the same settings on new instances and seeds."""

from dataclasses import dataclass, replace

from toolbench.lab.models import Cell, RunConfig
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.run_request import ConfigChoice, LaunchError, RunRequest

MAX_TRIALS = 2000


class FreshTrialsError(Exception):
    """Refusal of new trials; its text gives the reason."""


@dataclass(frozen=True, slots=True)
class FreshTrialsRequest:
    """Configurations and scenarios of new trials.

    Attributes:
        config_ids: configurations that represent the settings.
        settings: expected policy hashes of these configurations, in the same order.
        trials: trials of each scenario.
    """

    config_ids: tuple[int, ...]
    settings: tuple[str, ...]
    scenarios: tuple[str, ...]
    trials: int


def build_fresh_request(trials_request: FreshTrialsRequest, *, title: str, purpose: str) -> RunRequest:
    """Return the request for the same settings with a new seed.

    Everything else is taken from the run of the first configuration.

    Raises:
        FreshTrialsError: the settings would differ from those that were measured.
    """
    found = RunConfig.objects.select_related("run").in_bulk(trials_request.config_ids)
    configs = [found[pk] for pk in trials_request.config_ids if pk in found and found[pk].model_id is not None]
    if len(configs) != len(trials_request.config_ids):
        raise FreshTrialsError("Its model or its run was deleted, so it cannot be tried again.")
    first = configs[0]
    request = replace(
        RunRequest.from_json(first.run.request),
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
    _check_settings(request, configs, trials_request.settings)
    return request


def _build_config_choice(config: RunConfig) -> ConfigChoice:
    return ConfigChoice(
        config.model_id or 0, config.profile, config.strategy, config.method, config.examples, config.stream
    )


def _check_settings(request: RunRequest, configs: list[RunConfig], settings: tuple[str, ...]) -> None:
    try:
        plan = build_plan(request)
    except LaunchError as refused:
        raise FreshTrialsError(f"It cannot be tried again: {refused}") from refused
    planned = tuple(config.policy_hash for config in plan.configs)
    alike = {(config.tool_use_mode, config.run.instance_kind) for config in configs}
    if planned != settings or len(alike) > 1:
        raise FreshTrialsError(
            "Its settings are not what they were (a preset, a profile or the provider has changed), so another "
            "configuration would be tried. Measure and decide anew."
        )
    tried = set(Cell.objects.filter(config__in=configs).values_list("scenario", "scenario_version"))
    known = {scenario for scenario, _ in tried}
    now = {(cell.scenario, cell.scenario_version) for cell in plan.cells if cell.scenario in known}
    if changed := sorted({scenario for scenario, _ in now - tried}):
        raise FreshTrialsError(
            f"A newer version of {', '.join(changed)} is launched now: that is another task. Measure and decide anew."
        )
