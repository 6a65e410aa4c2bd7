"""Full plan of a trial, built from stored rows: the loop's input, the hash of this input, and the endpoint.

Settings that are frozen at the launch of a run are read once for each configuration. The provider is read again at a
claim if it was read more than ACCESS_CACHE_SECONDS ago, so a corrected key or address applies to later claims.
"""

import hashlib
import json
import socket
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from django.conf import settings

from toolbench.engine.light_dataclass import light
from toolbench.engine.loop.run import LoopPlan
from toolbench.engine.policy.settings import Policy, build_policy_json, resolve_policy
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.types import JsonObject, Message
from toolbench.evals import few_shot, scenarios
from toolbench.evals.types import Instance, Scenario
from toolbench.lab.credentials.keys import read_endpoint_headers, read_endpoint_key, read_network_access
from toolbench.lab.engine_version import compute_engine_version
from toolbench.lab.models import Provider, RunConfig, ServiceAddress
from toolbench.lab.scenarios.catalogue import ScenarioKey, load_frozen_cases
from toolbench.lab.worker.claims import ClaimedTrial
from toolbench.lab.worker.pacing.shared_state import read_settings
from toolbench.lab.worker.pacing.state import PaceSettings
from toolbench.providers.endpoint import Endpoint, Timeouts

SEEDED_KINDS = (Provider.Kind.LOCAL, Provider.Kind.SIMULATED)  # kinds of providers whose requests have a seed


class ServedElsewhereError(Exception):
    """Raised if the model is served on another machine, whose workers alone reach it; the message names the machine."""


class ScenarioChangedError(Exception):
    """Raised if a scenario is no longer available in the version of the run; the message names both versions."""


class ServerNotReadyError(Exception):
    """Raised if a local server does not answer yet, or no longer; the trial has to be queued again."""


@light(frozen=True, slots=True)
class FrozenConfig:
    """Settings of one configuration, as they were at the launch of its run.

    Attributes:
        examples: name of the set of few-shot examples, empty for none.
        service: name of the local server that serves the model, empty for a provider with an address.
        layers: policy layers in order, each with the name of its origin.
        cases: scenarios of test cases and benchmark cases, by slug and version.
        policies: cache of resolved policies with their JSON text, by the JSON text of the scenario's layer.
    """

    id: int
    model_name: str
    examples: str
    stream: bool
    service: str
    layers: tuple[tuple[str, JsonObject], ...]
    deadline_seconds: float
    connect_seconds: float | None = None  # None for the timeout of the provider
    read_seconds: float | None = None  # None for the timeout of the provider
    cases: Mapping[ScenarioKey, Scenario] = field(default_factory=dict)
    policies: dict[str, tuple[Policy, str]] = field(default_factory=dict)

    def build_timeouts(self, provider_timeouts: Timeouts) -> Timeouts:
        """Return the timeouts of the run; each timeout that the run does not set is that of the provider."""
        return Timeouts(
            connect=self.connect_seconds or provider_timeouts.connect,
            read=self.read_seconds or provider_timeouts.read,
            deadline=self.deadline_seconds,
        )

    def resolve_policy(self, layer: JsonObject) -> tuple[Policy, str]:
        """Return the policy with a scenario's layer on top, and its JSON text.

        Raises:
            PolicyError: the engine does not accept the layers.
        """
        key = json.dumps(layer, sort_keys=True)
        if key not in self.policies:
            policy = resolve_policy((*self.layers, ("scenario", layer))).policy
            self.policies[key] = policy, json.dumps(build_policy_json(policy), sort_keys=True)
        return self.policies[key]


@light(frozen=True, slots=True)
class ProviderAccess:
    """Present address and key of a provider.

    Attributes:
        endpoint: an endpoint without model and deadline.
        is_local: whether the provider is of the kind `local`.
        services: registered local servers by name; empty for a provider with an address.
        pace: settings that decide how fast requests are sent.
        endpoints: cache of the endpoints of configurations, by configuration id; empty for a provider without an
            address.
    """

    endpoint: Endpoint
    is_local: bool
    services: Mapping[str, ServiceAddress]
    pace: PaceSettings = PaceSettings()
    endpoints: dict[int, Endpoint] = field(default_factory=dict, compare=False)


@light(frozen=True, slots=True)
class TrialPlan:
    """Everything that is needed to run one trial.

    Attributes:
        policy_text: JSON text of the resolved policy.
        server: the local server that serves the model; None if the provider has an address.
    """

    scenario: Scenario
    instance: Instance
    loop: LoopPlan
    endpoint: Endpoint
    is_local: bool
    policy_text: str
    server: ServiceAddress | None = None

    @property
    def hash(self) -> str:
        """SHA-256 in hexadecimal of the loop's input, except the seed, and of the engine version."""
        plan = self.loop
        parts = [
            plan.model,
            self.policy_text,
            plan.system,
            plan.user_text,
            plan.history,
            _to_sent_tools(plan.tools.list_exposed()),
            plan.options,
            plan.is_streamed,
            plan.wire,
            compute_engine_version(),
            *((message.text, _to_sent_tools(message.tools)) for message in plan.further_messages),
            *(parameter.name for parameter in plan.omitted_parameters),
        ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=dict).encode()).hexdigest()


def load_frozen_configs(config_ids: Iterable[int]) -> dict[int, FrozenConfig]:
    """Read frozen configurations by id, with two queries, or three if they have test cases or benchmark cases."""
    ids = list(config_ids)
    rows = RunConfig.objects.filter(pk__in=ids).select_related("run")
    cases = load_frozen_cases(ids)
    return {
        row.pk: FrozenConfig(
            id=row.pk,
            model_name=row.model_name,
            examples=row.examples,
            stream=row.stream,
            service=row.service,
            layers=tuple((name, patch) for name, patch in row.layers),
            deadline_seconds=row.run.deadline_seconds,
            connect_seconds=row.run.connect_seconds,
            read_seconds=row.run.read_seconds,
            cases=cases,
        )
        for row in rows
    }


def load_provider_access(provider: Provider) -> ProviderAccess:
    """Read the address and key of a provider, with at most one query.

    Raises:
        KeyUnavailableError: the key, the extra headers or the network secrets of the provider cannot be read.
    """
    is_on_local_server = provider.kind in SEEDED_KINDS and not provider.base_url
    services = _load_addresses() if is_on_local_server else {}
    endpoint = Endpoint(
        base_url=provider.base_url,
        model="",
        api_prefix=provider.api_prefix,
        key=read_endpoint_key(provider),
        headers=read_endpoint_headers(provider),
        timeouts=Timeouts(
            connect=provider.connect_seconds or settings.CONNECT_SECONDS,
            read=provider.read_seconds or settings.READ_SECONDS,
        ),
        max_attempts=provider.max_attempts,
        wire=provider.wire,
        key_header=provider.key_header,
        query=provider.query,
        network=read_network_access(provider),
        sends_seed=provider.kind in SEEDED_KINDS,
    )
    return ProviderAccess(endpoint, provider.kind == Provider.Kind.LOCAL, services, read_settings(provider))


def refresh_addresses(access: ProviderAccess) -> ProviderAccess:
    """Return the access with the local servers that are registered now; unchanged for a provider with an address.

    Call it after a claim.
    """
    return access if access.endpoint.base_url else replace(access, services=_load_addresses())


def _load_addresses() -> dict[str, ServiceAddress]:
    return {address.name: address for address in ServiceAddress.objects.all()}


def find_local_server(access: ProviderAccess, service: str) -> ServiceAddress | None:
    """Return the local server of this name; None if it is not registered or the provider has an address."""
    return None if access.endpoint.base_url else access.services.get(service)


def build_trial_plan(trial: ClaimedTrial, config: FrozenConfig, access: ProviderAccess) -> TrialPlan:
    """Build the plan of a claimed trial.

    Raises:
        ServedElsewhereError: another machine serves the model.
        ServerNotReadyError: the local server is not ready.
        ScenarioChangedError: the scenario has changed since the launch.
        PolicyError: the engine no longer accepts the policy layers.
        KeyError: the scenario or its set of few-shot examples is unknown.
    """
    scenario = config.cases.get((trial.scenario, trial.scenario_version)) or _lookup_code_scenario(trial)
    instance = scenario.draw_instance(trial.instance_seed, kind=trial.instance_kind)
    endpoint = _find_endpoint(access, config)
    policy, policy_text = config.resolve_policy(instance.layer)
    loop = LoopPlan(
        model=endpoint.model,
        policy=policy,
        system=instance.system,
        user_text=instance.user_text,
        history=(*_load_examples(config, trial.scenario), *instance.history),
        tools=ToolRegistry(instance.tools),
        seed=trial.seed if endpoint.sends_seed else None,
        is_streamed=config.stream,
        wire=endpoint.wire,
        further_messages=instance.further,
        omitted_parameters=trial.omitted_parameters,
    )
    return TrialPlan(
        scenario, instance, loop, endpoint, access.is_local, policy_text, find_local_server(access, config.service)
    )


def _find_endpoint(access: ProviderAccess, config: FrozenConfig) -> Endpoint:
    """Return the endpoint of a configuration with its timeouts.

    For a provider with an address, the endpoint is built once for each configuration and kept in `access`. The address
    of a local server may differ between two trials, so its endpoint is built for each trial.

    Raises:
        ServedElsewhereError: another machine serves the model.
        ServerNotReadyError: the local server is not ready.
    """
    endpoint = access.endpoints.get(config.id)
    if endpoint is None:
        endpoint = build_model_endpoint(access, config.service, config.model_name)
        endpoint = replace(endpoint, timeouts=config.build_timeouts(endpoint.timeouts))
        if access.endpoint.base_url:
            access.endpoints[config.id] = endpoint
    return endpoint


def _lookup_code_scenario(trial: ClaimedTrial) -> Scenario:
    """Return the scenario that the code defines, in the version that the run was launched with.

    Raises:
        ScenarioChangedError: the code has only other versions of the scenario.
        KeyError: the slug is unknown.
    """
    versions = [version.version for version in scenarios.list_versions(trial.scenario)]
    if versions and trial.scenario_version not in versions:
        raise ScenarioChangedError(
            f"{trial.scenario} was version {trial.scenario_version} when the run was launched and is version "
            f"{versions[0]} now. Launch a new run."
        )
    return scenarios.lookup_scenario(trial.scenario, trial.scenario_version)


def _to_sent_tools(tools: Iterable[ToolDefinition]) -> list[tuple[object, ...]]:
    return [(tool.name, tool.description, tool.parameters) for tool in tools]


def _load_examples(config: FrozenConfig, scenario: str) -> tuple[Message, ...]:
    return few_shot.load_sets(scenario)[config.examples] if config.examples else ()


def build_model_endpoint(access: ProviderAccess, service: str, model: str) -> Endpoint:
    """Return the present endpoint of a model.

    Raises:
        ServedElsewhereError: another machine serves the model.
        ServerNotReadyError: the local server is not ready.
    """
    if access.endpoint.base_url:
        return replace(access.endpoint, model=model)
    address = find_local_server(access, service)
    if address is None:
        raise ServerNotReadyError(f"The local server {service or 'of this provider'} is not ready yet.")
    if address.host != socket.gethostname():
        raise ServedElsewhereError(
            f"{model} is served on {address.host}, for workers on that machine only. This worker runs on "
            f"{socket.gethostname()}."
        )
    # A llama.cpp process serves one model, under the name that its ready line gives.
    served_model = address.model if access.is_local and address.model else model
    return replace(access.endpoint, base_url=address.url, key=address.key or access.endpoint.key, model=served_model)
