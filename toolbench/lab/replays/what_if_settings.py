"""Settings of a what-if, parsed from its URL, and the policy layers that follow from them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from toolbench.engine import formats, repairs, transforms
from toolbench.engine.policy.presets import (
    INFRASTRUCTURE,
    STRATEGIES,
    Layers,
    PatchSet,
    build_layers,
    get_preset,
    list_model_workarounds,
    list_preset_names,
)
from toolbench.engine.policy.settings import Policy, resolve_policy
from toolbench.engine.types import JsonObject
from toolbench.lab.models import Model, Preset, RunConfig
from toolbench.lab.planning.rules import add_rules_layer
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.traces.code_view import escape_unprintable
from toolbench.lab.worker.trial_plan import FrozenConfig

LIMIT_KEYS = ("max_turns", "max_tool_calls_per_turn", "max_tool_args_bytes", "max_tool_output_bytes")
TRANSFORM_KEYS = (
    "message_transforms",
    "tool_transforms",
    "response_transforms",
    "tool_call_transforms",
    "tool_result_transforms",
    "argument_repairs",
)
MAX_LIMIT = 10_000_000  # largest value of a limit
MAX_IGNORED_SHOWN = 5  # unknown and invalid values that the page lists
MAX_IGNORED_CHARS = 60  # characters of such a value that the page shows
CONTRADICTION_TEXT = "These settings contradict each other: {}"
WHAT_IF_LAYER = "what-if"
_TRANSFORM_NAMES = frozenset(
    (*(name for kind in transforms.KINDS for name in transforms.list_names(kind)), *repairs.REPAIR_NAMES)
)
# First words of the names of a strategy's layers. `provider options` begins with one, but belongs to no strategy.
_STRATEGY_LAYER_WORDS = ("strategy", INFRASTRUCTURE, "provider", "workaround", "preset")
_PROVIDER_OPTIONS_LAYER = "provider options"


@dataclass(frozen=True, slots=True)
class WhatIfSettings:
    """Settings under which stored answers are replayed, as far as they differ from those of the run.

    Attributes:
        strategy: name of a strategy or preset; "" keeps the strategy of the run.
        presets: names of presets to add above all layers but the scenario's.
        without: names of transforms and repairs to omit.
        text_format: name of a text format; "" keeps that of the run.
        limits: policy keys of changed limits, with their values.
        ignored: unknown and invalid values of the URL, at most MAX_IGNORED_SHOWN, each with its key.
    """

    strategy: str = ""
    presets: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    text_format: str = ""
    limits: tuple[tuple[str, int], ...] = ()
    ignored: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def from_query(cls, lists: Mapping[str, Sequence[str]]) -> "WhatIfSettings":
        """Read the settings from URL parameters, with one query.

        If a strategy, text format or limit has several valid values, the last one is used.

        Args:
            lists: all values of each key.
        """
        presets = get_all_presets()
        is_valid: Mapping[str, Callable[[str], bool]] = {
            "strategy": lambda name: name in STRATEGIES or name in presets,
            "preset": presets.__contains__,
            "without": _TRANSFORM_NAMES.__contains__,
            "format": formats.list_format_names().__contains__,
            **dict.fromkeys(LIMIT_KEYS, _is_valid_limit),
        }
        url_values = {key: [value for value in lists.get(key, ()) if value] for key in is_valid}
        valid_values = {key: [value for value in url_values[key] if is_valid[key](value)] for key in is_valid}
        pairs = ((key, value) for key in is_valid for value in url_values[key])
        unknown = list(dict.fromkeys((key, value) for key, value in pairs if not is_valid[key](value)))
        return cls(
            strategy=next(reversed(valid_values["strategy"]), ""),
            presets=tuple(dict.fromkeys(valid_values["preset"])),
            without=tuple(dict.fromkeys(valid_values["without"])),
            text_format=next(reversed(valid_values["format"]), ""),
            limits=tuple((name, int(valid_values[name][-1])) for name in LIMIT_KEYS if valid_values[name]),
            ignored=tuple(
                f"{key} {escape_unprintable(value[:MAX_IGNORED_CHARS])}" for key, value in unknown[:MAX_IGNORED_SHOWN]
            ),
        )

    def render_query(self) -> str:
        """Return the settings as a query string, without ignored values."""
        pairs: list[tuple[str, str | int]] = [("strategy", self.strategy)] if self.strategy else []
        pairs += [("preset", name) for name in self.presets] + [("without", name) for name in self.without]
        pairs += [("format", self.text_format)] if self.text_format else []
        return urlencode([*pairs, *self.limits])

    @property
    def summary(self) -> str:
        """The changed settings in words; "as it ran" without any."""
        parts = [f"strategy {self.strategy}"] if self.strategy else []
        parts += [f"with {name}" for name in self.presets] + [f"without {name}" for name in self.without]
        parts += [f"text format {self.text_format}"] if self.text_format else []
        parts += [f"{name.replace('_', ' ')} {number}" for name, number in self.limits]
        return ", ".join(parts) or "as it ran"

    def apply(self, config: FrozenConfig) -> FrozenConfig:
        """Return the configuration as it would have been frozen under these settings.

        Raises:
            PolicyError: the settings contradict each other.
        """
        layers = self._replace_strategy(config) if self.strategy else config.layers
        presets = get_all_presets()
        layers += tuple((f"{WHAT_IF_LAYER} {name}", presets[name]) for name in self.presets)
        patch = {**dict(self.limits), **({"text_format": self.text_format} if self.text_format else {})}
        layers += ((WHAT_IF_LAYER, patch),) if patch else ()
        return replace(config, layers=leave_out_transforms(layers, self.without), policies={})

    def _replace_strategy(self, config: FrozenConfig) -> Layers:
        """Return the frozen layers with the layers of this strategy in place of those of the run's strategy."""
        layers = [layer for layer in config.layers if not _is_strategy_layer(layer[0])]
        profile_index = next((i for i, (name, _) in enumerate(layers) if name in ("profile", "run")), len(layers))
        run_index = next((i for i, (name, _) in enumerate(layers) if name == "run"), len(layers))
        below, above = _build_strategy_layers(self.strategy, config)
        return add_rules_layer(
            (*layers[:profile_index], *below, *layers[profile_index:run_index], *above, *layers[run_index:])
        )


def leave_out_transforms(layers: Layers, names: Iterable[str]) -> Layers:
    """Return the layers with two more on top that leave out these transforms and repairs.

    The first added layer clears the lists that contain them; the second sets the remaining names, in their order. If
    no list contains any of them, no layer is added.

    Raises:
        PolicyError: the layers contradict each other.
    """
    omitted = set(names)
    policy = resolve_policy(layers).policy
    lists = {key: applied for key, applied in list_policy_transforms(policy).items() if omitted & set(applied)}
    if not lists:
        return layers
    remaining = {key: [name for name in applied if name not in omitted] for key, applied in lists.items()}
    return (*layers, (WHAT_IF_LAYER, {key: [] for key in lists}), (WHAT_IF_LAYER, remaining))


def list_policy_transforms(policy: Policy) -> dict[str, tuple[str, ...]]:
    """Return the transforms and repairs that a policy applies, by policy key, in order."""
    return {key: getattr(policy, key) for key in TRANSFORM_KEYS}


def get_all_presets() -> dict[str, JsonObject]:
    """Return, with one query, the patches of all presets by name: built-in ones, then those of users."""
    user_presets = {row.name: row.patch for row in Preset.objects.filter(builtin=False)}
    return {name: get_preset(name) for name in list_preset_names()} | user_presets


def _build_strategy_layers(strategy: str, config: FrozenConfig) -> tuple[Layers, Layers]:
    """Return the layers of a strategy below the profile, and those above it.

    They follow from the current settings of the model and its provider. If the model was deleted, and another
    configuration of the run tried the same model with this strategy, the frozen layers of that configuration are used.
    """
    row = RunConfig.objects.select_related("model__provider").get(pk=config.id)
    if row.model is None and (frozen_layers := _find_frozen_layers(row, strategy)):
        return frozen_layers
    template, workarounds = get_template_and_workarounds(row)
    presets = get_all_presets()
    built_in = [name for name in workarounds if name in list_preset_names()]
    user_presets = [name for name in workarounds if name not in built_in and name in presets]
    patches = PatchSet(preset=presets.get(strategy, {}))
    layers = build_layers(strategy, template, workarounds=built_in, patches=patches)
    above = tuple(layer for layer in layers if layer[0].startswith("preset "))
    below = tuple(layer for layer in layers if layer not in above)
    added = tuple((f"workaround {name}", presets[name]) for name in user_presets) if strategy == "production" else ()
    return (*below, *added), above


def _find_frozen_layers(row: RunConfig, strategy: str) -> tuple[Layers, Layers] | None:
    """Return the strategy's layers that another configuration of the run has for the same model.

    Returns:
        The layers below the profile and those above it; None if the run has no such configuration.
    """
    same_model = RunConfig.objects.filter(run_id=row.run_id, provider_name=row.provider_name, model_name=row.model_name)
    other = same_model.filter(strategy=strategy).first()
    if other is None:
        return None
    layers = [(name, patch) for name, patch in other.layers if _is_strategy_layer(name)]
    above = tuple(layer for layer in layers if layer[0].startswith("preset "))
    return tuple(layer for layer in layers if layer not in above), above


def get_template_and_workarounds(row: RunConfig) -> tuple[str, tuple[str, ...]]:
    """Return the provider's template and the model's workarounds.

    If the model was deleted, they come from a model of the same name at a provider of the same name. Without such a
    model, the template is "" and the workarounds are those that the engine knows for the name.
    """
    same_names = Model.objects.select_related("provider").filter(name=row.model_name, provider__name=row.provider_name)
    model = row.model or same_names.first()
    if model is None:
        return "", list_model_workarounds(row.model_name)
    return model.provider.template, tuple(model.workarounds)


def _is_strategy_layer(name: str) -> bool:
    return name.partition(" ")[0] in _STRATEGY_LAYER_WORDS and name != _PROVIDER_OPTIONS_LAYER


def _is_valid_limit(text: str) -> bool:
    return parse_whole_number(text, minimum=1, maximum=MAX_LIMIT) is not None
