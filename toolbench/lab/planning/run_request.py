"""Types of a run request and of the plan that follows from it; neither is stored in tables of its own."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.lab.errors import InvalidFieldsError

MAX_CELL_TRIALS = 2_000  # trials of one cell that a form accepts
MAX_RUN_LIMIT = 2**31 - 1  # largest request or token limit of a run: the maximum of an integer column
NO_EXAMPLES = "none"  # stands for the examples "" on pages and in addresses
# Values of `RunRequest.streams` by the option of the form.
STREAMS_BY_OPTION = {"none": (False,), "streamed": (True,), "both": (False, True)}


class LaunchError(InvalidFieldsError):
    """Raised if a request cannot be launched."""


@dataclass(frozen=True, slots=True)
class ConfigChoice:
    """One configuration of a request.

    Attributes:
        model: id of the model.
        strategy: a strategy expression (lab/planning/strategies.py).
        examples: name of a few-shot set; "" for none.
        stream: whether answers are streamed.
    """

    model: int
    profile: str = "default"
    strategy: str = "production"
    method: str = "native"
    examples: str = ""
    stream: bool = False


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Request for a run.

    The configurations are `configs` or, if it is empty, the cross product of models, profiles, strategies, methods,
    examples and streams. Each is tried with every scenario.

    Attributes:
        title: title of the run; "" for one that is built from the plan.
        models: ids of models.
        strategies: strategy expressions (lab/planning/strategies.py).
        examples: names of few-shot sets; "" for none.
        streams: whether answers are streamed: one or both values.
        scenarios: slugs of scenarios.
        trials: number of trials per cell; with sequential stopping, the maximum.
        until: the StoppingRule of sequential stopping as JSON; {} for a fixed number of trials.
        instance_kind: "parity" or "drawn".
        tool_allowlist: names of the tools that may be called; () for all.
        tool_denylist: names of tools that may not be called.
        overrides: a policy patch above all layers but the scenario's.
        request_cap: request limit of the run; None for none.
        token_cap: token limit of the run; None for none.
        deadline_seconds: time limit of a trial; None for the default.
        seed: equal requests with an equal seed plan equal trials; None draws a seed.
        connect_seconds: timeout for connecting; None for that of the provider.
        read_seconds: timeout for reading; None for that of the provider.
        jobs: concurrency limit of the run per provider; None for none.
        purpose: value of `Run.purpose`; "" for an ordinary run.
        enforce_applicability: whether to skip profiles that do not apply to a model.
        probe_unknown: whether models with unknown tool support are probed before their first trial, unless the run has
            a limit. With method auto, they are always probed.
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
        """Return the request as JSON, for `from_json`."""
        document: JsonObject = json.loads(json.dumps(asdict(self)))
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "RunRequest":
        """Read a request from JSON.

        Raises:
            LaunchError: a field is unknown, or a field or an element of its list has the wrong type.
        """
        unknown = sorted(set(document) - {field.name for field in fields(cls)})
        if unknown:
            raise LaunchError({name: [f"There is no field named {name}."] for name in unknown})
        values: JsonObject = {name: tuple(item) if isinstance(item, list) else item for name, item in document.items()}
        if invalid := sorted(name for name, item in values.items() if not _has_field_type(name, item)):
            raise LaunchError({name: [f"{name} has a value of the wrong type."] for name in invalid})
        try:
            values["configs"] = tuple(map(_read_config, values.get("configs", ())))
        except TypeError as error:
            sentence = "A configuration has a model and optionally profile, strategy, method, examples and stream."
            raise LaunchError({"configs": [sentence]}) from error
        return cls(**values)


_DEFAULTS = RunRequest()


_ELEMENT_TYPES: Mapping[str, type] = {"models": int, "streams": bool, "configs": dict}  # str for any other list
_WHOLE_NUMBERS = ("request_cap", "token_cap", "jobs", "seed")


def _has_field_type(name: str, value: object) -> bool:
    """Return whether the value of a field has the type of the field's default.

    In a tuple, each element has to have the element type of the field. If the default is None, the value may be None or
    an integer and, unless the field is in _WHOLE_NUMBERS, a float.
    """
    default = getattr(_DEFAULTS, name)
    if default is None:
        return value is None or type(value) is int or (type(value) is float and name not in _WHOLE_NUMBERS)
    if isinstance(default, tuple):
        element_type = _ELEMENT_TYPES.get(name, str)
        return isinstance(value, tuple) and all(type(element) is element_type for element in value)
    return type(value) is type(default)


def _read_config(document: JsonObject) -> ConfigChoice:
    """Read a configuration from JSON.

    Raises:
        TypeError: the model is missing, or a field is unknown or has the wrong type.
    """
    choice = ConfigChoice(**document)
    if wrong := [field.name for field in fields(choice) if type(getattr(choice, field.name)) is not field.type]:
        raise TypeError(f"These fields have the wrong type: {', '.join(wrong)}.")
    return choice


@dataclass(frozen=True, slots=True)
class SkippedItem:
    """A requested configuration, or configuration × scenario, that is not tried, with the reason."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class PlannedConfig:
    """A configuration as a launch would freeze it.

    Attributes:
        model: id of the model.
        provider: id of the provider.
        options: the sampling options of the profile.
        method: "auto" if a probe is needed to choose it.
        layers: lowest first, without the scenario's.
        routing: the choice of method auto (lab/planning/auto_method.py); {} without one.
        support: whether the model supports tools and who says so (lab/planning/tool_support.py).
        probe: id of the probe that says so; None without one.
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
    routing: JsonObject = field(default_factory=dict)
    support: JsonObject = field(default_factory=dict)
    probe: int | None = None
    awaits_probe: bool = False
    may_cost: bool = False

    def __str__(self) -> str:
        streamed = "streamed" if self.stream else ""
        parts = (self.model_name, self.profile, self.strategy, self.method, self.examples, streamed)
        return " · ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """One configuration with one scenario.

    Attributes:
        config: index of the configuration in the plan.
        applicable: whether trials can run; otherwise they end as not applicable.
        deterministic: whether requests send temperature 0.
        least_requests: minimum number of requests of one trial; 0 if it is not applicable.
        most_requests: maximum number of requests of one trial; 0 if it is not applicable.
    """

    config: int
    scenario: str
    scenario_version: int
    scenario_group: str
    control: bool
    applicable: bool
    deterministic: bool
    least_requests: int
    most_requests: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The run that a launch would create.

    Attributes:
        trials: number of trials, including those that do not apply; with sequential stopping, the maximum.
        least_trials: number of trials that the launch creates; with sequential stopping, those of the first round.
        least_requests: requests of the `least_trials` if each passes at the first attempt; at most the request limit.
        most_requests: requests of all `trials` if each uses every turn and every attempt; at most the request limit.
        paid_requests: maximum number of requests that may cost money, by provider name; probes are included.
        needs_confirmation: whether a user has to confirm the paid requests.
    """

    configs: tuple[PlannedConfig, ...]
    cells: tuple[PlannedCell, ...]
    skipped: tuple[SkippedItem, ...]
    trials: int
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
    def max_paid_requests(self) -> int:
        """Maximum number of paid requests over all providers."""
        return sum(self.paid_requests.values())
