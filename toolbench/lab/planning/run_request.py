"""Requests for a run and their plans: plain values, before anything is written."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.lab.errors import InvalidFieldsError

MAX_CAP = 2**31 - 1  # that a column takes
STREAMS_BY_OPTION = {"none": (False,), "streamed": (True,), "both": (False, True)}


class LaunchError(InvalidFieldsError):
    """A request that cannot be launched."""


@dataclass(frozen=True, slots=True)
class ConfigChoice:
    """One configuration of a request."""

    model: int
    profile: str = "default"
    strategy: str = "production"
    method: str = "native"
    examples: str = ""
    stream: bool = False


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run is to try: plain values.

    It is the cross product of models, profiles, strategies, methods, examples and streams, or exactly `configs` where
    given, each with every scenario, `trials` times.

    Attributes:
        until: rule of sequential stopping (`stopping.StoppingRule`): each cell continues until it is decided, up to
            `trials`.
        overrides: a sparse policy patch above everything but the scenario.
        seed: equal requests with an equal seed plan equal trials; None draws a seed.
        connect_seconds, read_seconds: replace the timeouts of the provider.
        jobs: simultaneous trials at one provider, within its own limit.
        probe_unknown: probe a model of unknown tool support before its first trial, unless the run has a limit on
            requests or tokens. Method auto always does.
    """

    title: str = ""
    models: tuple[int, ...] = ()
    profiles: tuple[str, ...] = ("default",)
    strategies: tuple[str, ...] = ("production",)
    methods: tuple[str, ...] = ("native",)
    examples: tuple[str, ...] = ("",)
    streams: tuple[bool, ...] = (False,)
    scenarios: tuple[str, ...] = ()
    trials: int = 10
    until: JsonObject = field(default_factory=dict)
    instance_kind: str = "parity"
    tool_use_mode: str = "enforced"
    tool_failure_policy: str = "fatal"
    tool_allowlist: tuple[str, ...] = ()
    tool_denylist: tuple[str, ...] = ()
    overrides: JsonObject = field(default_factory=dict)
    request_cap: int | None = None
    token_cap: int | None = None
    deadline_seconds: float | None = None
    connect_seconds: float | None = None
    read_seconds: float | None = None
    jobs: int | None = None
    seed: int | None = None
    purpose: str = ""
    enforce_applicability: bool = True
    probe_unknown: bool = False
    configs: tuple[ConfigChoice, ...] = ()

    def to_json(self) -> JsonObject:
        """Return plain JSON; `from_json` gives an equal request."""
        plain: JsonObject = json.loads(json.dumps(asdict(self)))
        return plain

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "RunRequest":
        """Read a request from JSON.

        Raises:
            LaunchError: unknown fields or values of a wrong type.
        """
        known = {f.name: f for f in fields(cls)}
        unknown = sorted(set(value) - set(known))
        if unknown:
            raise LaunchError({name: [f"There is no field named {name}."] for name in unknown})
        given: JsonObject = {name: tuple(item) if isinstance(item, list) else item for name, item in value.items()}
        if odd := sorted(name for name, item in given.items() if not _has_field_type(item, getattr(_DEFAULTS, name))):
            raise LaunchError({name: [f"{name} is of another kind than expected."] for name in odd})
        try:
            given["configs"] = tuple(ConfigChoice(**config) for config in given.get("configs", ()))
        except TypeError as error:
            raise LaunchError(
                {
                    "configs": [
                        "Each configuration has model and, if need be, profile, strategy, method, examples, stream."
                    ]
                }
            ) from error
        return cls(**given)


_DEFAULTS = RunRequest()


def _has_field_type(item: object, plain: object) -> bool:
    """Return whether a value has the type of the field's default; None stands for optional numbers."""
    if plain is None:
        return item is None or (isinstance(item, int | float) and not isinstance(item, bool))
    return type(item) is type(plain)


@dataclass(frozen=True, slots=True)
class SkippedItem:
    """A requested item that is left out."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class PlannedConfig:
    """A configuration as it will be frozen.

    Attributes:
        layers: lowest first, without the scenario's.
        method: `auto` while a probe is needed to choose it.
        awaits_probe: whether its trials wait for the model's probe.
        may_cost: whether its requests may cost money.
    """

    model: int
    provider: int
    provider_name: str
    provider_kind: str
    model_name: str
    profile: str
    options: JsonObject
    strategy: str
    method: str
    examples: str
    stream: bool
    layers: tuple[tuple[str, JsonObject], ...]
    policy_hash: str
    routing: JsonObject = field(
        default_factory=dict
    )  # where the method auto led, and why (lab/planning/auto_method.py)
    support: JsonObject = field(default_factory=dict)  # who said whether the model calls tools
    probe: int | None = None  # the probe that said so
    awaits_probe: bool = False
    may_cost: bool = False

    def __str__(self) -> str:
        streamed = "streamed" if self.stream else ""
        parts = (self.model_name, self.profile, self.strategy, self.method, self.examples, streamed)
        return " · ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """One configuration, by its place in the plan, with one scenario.

    Trials of a cell that is not applicable never run.
    """

    config: int
    scenario: str
    scenario_version: int
    scenario_group: str
    control: bool
    applicable: bool
    deterministic: bool
    least_requests: int  # per trial
    most_requests: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What a launch would write.

    Requests are totals: the fewest when every trial passes at the first attempt, the most when every turn is used and
    every attempt fails, within the request limit. `paid_requests` are the most by provider, without local and simulated
    ones.
    """

    configs: tuple[PlannedConfig, ...]
    cells: tuple[PlannedCell, ...]
    skipped: tuple[SkippedItem, ...]
    trials: int  # at most, where cells go on until they are decided
    least_trials: int
    least_requests: int
    most_requests: int
    paid_requests: dict[str, int]
    needs_confirmation: bool

    @property
    def may_cost(self) -> bool:
        """Whether a request of the plan may cost money."""
        return any(config.may_cost for config in self.configs)

    @property
    def most_paid(self) -> int:
        """The most paid requests, which have to be confirmed."""
        return sum(self.paid_requests.values())
