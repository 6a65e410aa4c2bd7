"""From a request to a plan: which configurations and cells there will be, what is left out and why, and what it may
cost. Nothing is written."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product

from toolbench.engine.asking.methods import ask_for
from toolbench.engine.capabilities.record import Effective
from toolbench.engine.capabilities.routing import AUTO, Route, refusal, tool_troubles
from toolbench.engine.errors import PlanError, PolicyError
from toolbench.engine.messages import JsonObject
from toolbench.engine.policy.overrides import merge_options
from toolbench.engine.policy.policy import Policy, resolve
from toolbench.engine.policy.presets import STRATEGIES, Layers, UnknownPreset, Wishes, layers_for, preset, preset_names
from toolbench.evals import examples
from toolbench.evals.statistics.stopping import FIRST, Until, UntilRefused
from toolbench.evals.trials import Scenario
from toolbench.lab.models import Model, Preset, Provider, SamplingProfile
from toolbench.lab.planning.known_scenarios import find_scenarios, in_catalogue_order
from toolbench.lab.planning.paying import FREE_KINDS, is_applicable, most_requests, needs_asking
from toolbench.lab.planning.policy_hash import policy_hash
from toolbench.lab.planning.rules import LAUNCH, with_rules
from toolbench.lab.planning.run_request import (
    LARGEST_CAP,
    ConfigChoice,
    LaunchRefused,
    Plan,
    PlannedCell,
    PlannedConfig,
    RunRequest,
    Skipped,
)
from toolbench.lab.planning.strategies import read_strategy
from toolbench.lab.planning.support import deciding_probe, support_of
from toolbench.lab.probes.capabilities import get_effective
from toolbench.lab.probes.routes import must_probe, routing_of, way, with_capabilities, with_route

METHODS = (AUTO, "native", "text_json", "template", "constrained")
MOST_TRIALS = 100_000  # of one run
DEFAULT_PROFILE = "default"


@dataclass(frozen=True, slots=True)
class Found:
    """The rows and scenarios a request speaks of, by what it calls them."""

    models: Mapping[int, Model]
    profiles: Mapping[str, SamplingProfile]
    presets: Mapping[str, JsonObject]
    scenarios: tuple[Scenario, ...]
    effective: Mapping[int, Effective]


def expand(request: RunRequest) -> Plan:
    """Raises LaunchRefused with plain sentences by field."""
    found = _find(request)
    choices, skipped = _choices(request, found)
    configs: list[PlannedConfig] = []
    cells: list[PlannedCell] = []
    for choice in choices:
        if why := _unsuited(choice, found):
            skipped.append(Skipped(_named(choice, found), why))
            continue
        config = _config(request, choice, found)
        if not config.method:
            skipped.append(Skipped(_named(choice, found), config.routing["reason"]))
            continue
        kept, left_out = _cells(config, len(configs), found)
        skipped += left_out
        if kept:
            configs.append(config)
            cells += kept
    return _plan(request, configs, cells, skipped)


def _find(request: RunRequest) -> Found:
    """Looks everything up; complains of all that is wrong at once."""
    errors: dict[str, list[str]] = defaultdict(list)
    wanted = {choice.model for choice in request.configs} or set(request.models)
    models = {model.pk: model for model in Model.objects.filter(pk__in=wanted).select_related("provider")}
    if not wanted:
        errors["models"].append("Choose at least one model.")
    errors["models"] += [f"There is no model {pk}." for pk in sorted(wanted - set(models))]
    profiles = {profile.name: profile for profile in SamplingProfile.objects.all()}
    names = {choice.profile for choice in request.configs} or set(request.profiles)
    errors["profiles"] += [f"There is no profile {name}." for name in sorted(names - set(profiles) - {DEFAULT_PROFILE})]
    presets = {row.name: row.patch for row in Preset.objects.filter(builtin=False)}
    strategies = {choice.strategy for choice in request.configs} or set(request.strategies)
    known = {*preset_names(), *presets}
    errors["strategies"] += [
        f"There is no strategy or preset {word}."
        for name in sorted(strategies)
        for word in read_strategy(name).unknown(STRATEGIES, known)
    ]
    methods = {choice.method for choice in request.configs} or set(request.methods)
    errors["methods"] += [
        f"There is no method {name}: choose from {', '.join(METHODS)}." for name in sorted(methods - set(METHODS))
    ]
    chosen = _scenarios(request, errors)
    _check_numbers(request, errors)
    if problems := {name: sentences for name, sentences in errors.items() if sentences}:
        raise LaunchRefused(problems)
    return Found(models, profiles, presets, chosen, get_effective(models.values()))


def _scenarios(request: RunRequest, errors: dict[str, list[str]]) -> tuple[Scenario, ...]:
    known = find_scenarios(request.scenarios)
    errors["scenarios"] += [f"There is no scenario {slug}." for slug in request.scenarios if slug not in known]
    if not request.scenarios:
        errors["scenarios"].append("Choose at least one scenario.")
    return in_catalogue_order(known.values())


def _check_numbers(request: RunRequest, errors: dict[str, list[str]]) -> None:
    if not 1 <= request.trials <= MOST_TRIALS:
        errors["trials"].append(f"Trials per cell must be between 1 and {MOST_TRIALS}.")
    if request.until:
        try:
            Until.read(request.until)
        except UntilRefused as refused:
            errors["until"].append(str(refused))
    for name, cap in (("request_cap", request.request_cap), ("token_cap", request.token_cap)):
        if cap is not None and not 1 <= cap <= LARGEST_CAP:
            errors[name].append(f"A cap is a whole number from 1 to {LARGEST_CAP:,}; leave it empty for none.")
    if request.deadline_seconds is not None and not 0 < request.deadline_seconds <= 24 * 3600:
        errors["deadline_seconds"].append("The deadline of a trial must be more than 0 seconds and at most a day.")
    if request.instance_kind not in ("parity", "drawn"):
        errors["instance_kind"].append("Instances are either parity or drawn.")


def _choices(request: RunRequest, found: Found) -> tuple[list[ConfigChoice], list[Skipped]]:
    """Every configuration asked for, profiles that do not apply left out; a model with none left gets the default."""
    if request.configs:
        return list(request.configs), []
    skipped: list[Skipped] = []
    choices: list[ConfigChoice] = []
    for pk in request.models:
        model = found.models[pk]
        fitting = [name for name in request.profiles if _applies(name, model, request, found)]
        skipped += [
            Skipped(f"{model.name} · {name}", f"The profile applies to {found.profiles[name].applies_to} only.")
            for name in request.profiles
            if name not in fitting
        ]
        profiles = fitting or [DEFAULT_PROFILE]
        combinations = product(profiles, request.strategies, request.methods, request.examples, request.streams)
        choices += [ConfigChoice(pk, *combination) for combination in combinations]
    return choices, skipped


def _applies(name: str, model: Model, request: RunRequest, found: Found) -> bool:
    profile = found.profiles.get(name)
    return profile is None or not request.enforce_applicability or fnmatchcase(model.name, profile.applies_to)


def _unsuited(choice: ConfigChoice, found: Found) -> str:
    """Why a method that was named cannot be used here; "" where it can."""
    wire = found.models[choice.model].provider.wire
    if choice.method == "template" and wire != Provider.Wire.CHAT:
        return f"An endpoint that speaks {wire} takes no rendered prompt."
    return "" if choice.method == AUTO else refusal(choice.method, found.effective[choice.model].capabilities)


def _named(choice: ConfigChoice, found: Found) -> str:
    parts = (found.models[choice.model].name, choice.profile, choice.strategy, choice.method, choice.examples)
    return " · ".join(part for part in parts if part)


def _config(request: RunRequest, choice: ConfigChoice, found: Found) -> PlannedConfig:
    model = found.models[choice.model]
    profile = found.profiles.get(choice.profile)
    options = profile.options if profile else {}
    layers = _layers(request, choice, found)
    effective = found.effective[choice.model]
    try:
        layers = with_rules(layers)
        layers = with_capabilities(layers, read_strategy(choice.strategy).base, effective)
        chosen = _chosen(choice, layers, effective)
        layers = with_route(layers, chosen) if chosen and chosen.method else layers
        policy = resolve(layers).policy
        ask_for(policy)
    except PolicyError as error:
        raise LaunchRefused(_policy_errors(error)) from error
    except PlanError as error:
        raise LaunchRefused({"methods": [str(error)]}) from error
    return PlannedConfig(
        model=model.pk,
        provider=model.provider_id,
        provider_name=model.provider.name,
        provider_kind=model.provider.kind,
        model_name=model.name,
        profile=choice.profile,
        options=options,
        strategy=choice.strategy,
        method=chosen.method if chosen else choice.method,
        examples=choice.examples,
        stream=choice.stream,
        layers=layers,
        policy_hash=policy_hash(policy),
        routing=routing_of(chosen, effective) if chosen else {},
        support=support_of(effective),
        probe=deciding_probe(effective),
    )


def _chosen(choice: ConfigChoice, layers: Layers, effective: Effective) -> Route | None:
    """Where auto leads; None for a method that was named, and while a probe has to be awaited."""
    if choice.method != AUTO or must_probe(effective.capabilities):
        return None
    return way(layers, effective)


def _layers(request: RunRequest, choice: ConfigChoice, found: Found) -> Layers:
    """Lowest first. What the run asks of every configuration lies below the workarounds (but see planning.rules); what
    the user wrote as overrides lies above all but the scenario."""
    model = found.models[choice.model]
    profile = found.profiles.get(choice.profile)
    words = read_strategy(choice.strategy)
    workarounds = [name for name in model.workarounds if name not in words.less]
    own = [name for name in workarounds if name in found.presets]
    patch: JsonObject = found.presets.get(words.base, {})
    wishes = Wishes(
        profile={"llm_options_defaults": profile.options} if profile and profile.options else {},
        preset=patch,
        run=request.overrides,
    )
    try:
        layers = layers_for(
            words.base,
            model.provider.template,
            workarounds=[name for name in workarounds if name not in own],
            wishes=wishes,
        )
    except UnknownPreset as error:
        raise LaunchRefused({"models": [f"{model.name} names a workaround nobody knows: {error.name}."]}) from error
    if model.provider.option_defaults:
        layers = (("provider options", {"llm_options_defaults": model.provider.option_defaults}), *layers)
    added = [*(own if words.base == "production" else ()), *words.more]
    layers = _with_workarounds(layers, tuple((f"workaround {name}", _preset(name, found)) for name in added))
    return ((LAUNCH, _asked(request, choice, found)), *layers)


def _preset(name: str, found: Found) -> JsonObject:
    return found.presets[name] if name in found.presets else preset(name)


def _with_workarounds(layers: Layers, own: Layers) -> Layers:
    """The user's own workarounds, and presets put on top of a strategy, stand where built-in workarounds do: below
    profile, preset and run."""
    place = next((at for at, (name, _) in enumerate(layers) if name in ("profile", "run")), len(layers))
    return (*layers[:place], *own, *layers[place:])


def _asked(request: RunRequest, choice: ConfigChoice, found: Found) -> JsonObject:
    model = found.models[choice.model]
    asked: JsonObject = {
        "tool_use_mode": request.tool_use_mode,
        "tool_failure_policy": request.tool_failure_policy,
    }
    if choice.method != AUTO:
        asked["method"] = choice.method
    if choice.examples:
        asked["examples"] = choice.examples
    known = found.effective[model.pk].capabilities
    if known.constrained:
        asked["constraint"] = known.constrained[0]
    if known.text_format:
        asked["text_format"] = known.text_format
    if request.tool_allowlist:
        asked["tool_allowlist"] = list(request.tool_allowlist)
    if request.tool_denylist:
        asked["tool_denylist"] = list(request.tool_denylist)
    return asked


def _policy_errors(error: PolicyError) -> dict[str, list[str]]:
    errors: dict[str, list[str]] = defaultdict(list)
    for problem in error.problems:
        mine = problem.layer == "run"
        where = "" if mine else f"In {problem.layer}: "
        errors["overrides" if mine else "strategies"].append(f"{where}{problem.key}: {problem.message}.")
    return dict(errors)


def samples_at_zero(policy: Policy) -> bool:
    """Whether the temperature that is sent is 0, whichever layer asks for it."""
    return merge_options(policy.llm_options_defaults, policy.request_overrides).get("temperature") == 0


def _cells(config: PlannedConfig, place: int, found: Found) -> tuple[list[PlannedCell], list[Skipped]]:
    kept: list[PlannedCell] = []
    skipped: list[Skipped] = []
    for scenario in found.scenarios:
        if config.examples and config.examples not in examples.sets_for(scenario.slug):
            skipped.append(Skipped(f"{config} × {scenario.slug}", f"The scenario has no examples {config.examples}."))
            continue
        instance = scenario.draw(0, kind="parity")
        tools = (*instance.tools, *(tool for said in instance.further for tool in said.tools))
        troubles = tool_troubles(tools, found.effective[config.model].capabilities)
        if troubles and config.method in ("native", AUTO):
            skipped.append(Skipped(f"{config} × {scenario.slug}", troubles[0]))
            continue
        kept.append(_cell(config, place, scenario, found))
    return kept, skipped


def _cell(config: PlannedConfig, place: int, scenario: Scenario, found: Found) -> PlannedCell:
    instance = scenario.draw(0, kind="parity")
    policy = resolve((*config.layers, ("scenario", instance.layer))).policy
    applicable = is_applicable(policy, scenario)
    attempts = found.models[config.model].provider.max_attempts
    most = most_requests(policy, attempts, 1 + len(instance.further)) if applicable else 0
    return PlannedCell(
        config=place,
        scenario=scenario.slug,
        scenario_version=scenario.version,
        scenario_group=scenario.group,
        control=scenario.control,
        applicable=applicable,
        deterministic=samples_at_zero(policy),
        least_requests=min(scenario.straight_requests, most),
        most_requests=most,
    )


def _plan(request: RunRequest, configs: list[PlannedConfig], cells: list[PlannedCell], skipped: list[Skipped]) -> Plan:
    trials = len(cells) * request.trials
    if trials > MOST_TRIALS:
        raise LaunchRefused({"trials": [f"This would be {trials} trials; a run has at most {MOST_TRIALS}."]})
    if not cells:
        raise LaunchRefused({"models": ["Nothing is left to try.", *(f"{item.what}: {item.why}" for item in skipped)]})
    if request.until.get("rule") == "best" and max(competitors(cells).values(), default=0) < 2:
        raise LaunchRefused({"until": ["The best of one is known already: choose a second configuration."]})
    least = first_blocks(request)
    cap = request.request_cap if request.request_cap is not None else 2**62
    paid: dict[str, int] = defaultdict(int)
    for name, most in _paid(configs, cells):
        paid[name] = min(cap, paid[name] + most * request.trials)
    return Plan(
        configs=tuple(configs),
        cells=tuple(cells),
        skipped=tuple(skipped),
        trials=trials,
        least_trials=len(cells) * least,
        least_requests=min(cap, least * sum(cell.least_requests for cell in cells)),
        most_requests=min(cap, request.trials * sum(cell.most_requests for cell in cells)),
        paid_requests=dict(paid),
        needs_confirmation=needs_asking(paid),
    )


def first_blocks(request: RunRequest) -> int:
    """Trials of every cell that are queued at once."""
    return min(FIRST, request.trials) if request.until else request.trials


def competitors(cells: Sequence[PlannedCell]) -> Counter[str]:
    """How many cells a scenario has that can be decided."""
    return Counter(cell.scenario for cell in cells if cell.applicable)


def _paid(configs: list[PlannedConfig], cells: list[PlannedCell]) -> Iterator[tuple[str, int]]:
    for cell in cells:
        config = configs[cell.config]
        if config.provider_kind not in FREE_KINDS:
            yield config.provider_name, cell.most_requests
