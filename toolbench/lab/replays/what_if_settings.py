"""The settings of a what-if, as in the URL, and the policy layers that follow from them."""

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
MAX_LIMIT = 10_000_000
MAX_IGNORED_SHOWN = 5  # told of what is not known, each by its first MAX_IGNORED_CHARS characters
MAX_IGNORED_CHARS = 60
WHAT_IF_LAYER = "what-if"
_TRANSFORM_NAMES = frozenset(
    (*(name for kind in transforms.KINDS for name in transforms.list_names(kind)), *repairs.REPAIR_NAMES)
)
_STRATEGY_LAYERS = (
    "strategy",
    INFRASTRUCTURE,
    "provider",
    "workaround",
    "preset",
)  # first words of layers that a strategy brings
_NON_STRATEGY_LAYER = "provider options"


@dataclass(frozen=True, slots=True)
class WhatIfSettings:
    """Other settings for stored answers.

    Attributes:
        strategy: "" keeps the strategy of the run.
        presets: laid over all layers but the scenario's.
        without: transforms and repairs to leave out.
        text_format: "" keeps the text format.
        limits: changed limits by policy key.
        ignored: values of the URL that are not known.
    """

    strategy: str = ""
    presets: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    text_format: str = ""
    limits: tuple[tuple[str, int], ...] = ()
    ignored: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def from_query(cls, lists: Mapping[str, Sequence[str]]) -> "WhatIfSettings":
        """Return the settings of these URL parameters.

        Args:
            lists: all values of each key.
        """
        presets = get_all_presets()
        known: Mapping[str, Callable[[str], bool]] = {
            "strategy": lambda name: name in STRATEGIES or name in presets,
            "preset": presets.__contains__,
            "without": _TRANSFORM_NAMES.__contains__,
            "format": formats.list_format_names().__contains__,
            **dict.fromkeys(LIMIT_KEYS, _is_valid_limit),
        }
        given = {key: [value for value in dict.fromkeys(lists.get(key, ())) if value] for key in known}
        taken = {key: [value for value in given[key] if known[key](value)] for key in known}
        unknown = [(key, value) for key in known for value in given[key] if value not in taken[key]]
        return cls(
            strategy=next(reversed(taken["strategy"]), ""),
            presets=tuple(taken["preset"]),
            without=tuple(taken["without"]),
            text_format=next(reversed(taken["format"]), ""),
            limits=tuple((name, int(taken[name][-1])) for name in LIMIT_KEYS if taken[name]),
            ignored=tuple(
                f"{key} {escape_unprintable(value[:MAX_IGNORED_CHARS])}" for key, value in unknown[:MAX_IGNORED_SHOWN]
            ),
        )

    def query(self) -> str:
        """Return the settings as a query string."""
        pairs: list[tuple[str, str | int]] = [("strategy", self.strategy)] if self.strategy else []
        pairs += [("preset", name) for name in self.presets] + [("without", name) for name in self.without]
        pairs += [("format", self.text_format)] if self.text_format else []
        return urlencode([*pairs, *self.limits])

    @property
    def words(self) -> str:
        """The changes in one line."""
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
        layers = self._with_strategy(config) if self.strategy else config.layers
        presets = get_all_presets()
        layers += tuple((f"{WHAT_IF_LAYER} {name}", presets[name]) for name in self.presets)
        wished = {**dict(self.limits), **({"text_format": self.text_format} if self.text_format else {})}
        layers += ((WHAT_IF_LAYER, wished),) if wished else ()
        return replace(config, layers=leave_out_transforms(layers, self.without), policies={})

    def _with_strategy(self, config: FrozenConfig) -> Layers:
        """Return the frozen layers with those of another strategy instead of the run's."""
        kept = [layer for layer in config.layers if not _is_strategy_layer(layer[0])]
        place = next((at for at, (name, _) in enumerate(kept) if name in ("profile", "run")), len(kept))
        high = next((at for at, (name, _) in enumerate(kept) if name == "run"), len(kept))
        lower, chosen = _build_strategy_layers(self.strategy, config)
        return add_rules_layer((*kept[:place], *lower, *kept[place:high], *chosen, *kept[high:]))


def leave_out_transforms(layers: Layers, names: Iterable[str]) -> Layers:
    """Return the layers with two more on top that leave out these transforms and repairs.

    The others keep their order.
    """
    left_out = set(names)
    policy = resolve_policy(layers).policy
    kinds = {kind: found for kind, found in list_policy_transforms(policy).items() if left_out & set(found)}
    if not kinds:
        return layers
    rest = {kind: [name for name in found if name not in left_out] for kind, found in kinds.items()}
    return (*layers, (WHAT_IF_LAYER, {kind: [] for kind in kinds}), (WHAT_IF_LAYER, rest))


def list_policy_transforms(policy: Policy) -> dict[str, tuple[str, ...]]:
    """Return the transforms and repairs that a policy applies, by policy key, in order."""
    return {kind: getattr(policy, kind) for kind in TRANSFORM_KEYS}


def get_all_presets() -> dict[str, JsonObject]:
    """Return the patches of all presets by name: built-in ones, then those of users. One query."""
    own_presets = {row.name: row.patch for row in Preset.objects.filter(builtin=False)}
    return {name: get_preset(name) for name in list_preset_names()} | own_presets


def _build_strategy_layers(strategy: str, config: FrozenConfig) -> tuple[Layers, Layers]:
    """Return the layers of a strategy below the profile and above it, for the model as it is known now.

    A strategy that is not known here is taken from the run's frozen layers if they have it.
    """
    row = RunConfig.objects.select_related("model__provider").get(pk=config.id)
    if row.model is None and (frozen := _find_frozen_layers(row, strategy)):
        return frozen
    template, workarounds = _get_model_facts(row)
    presets = get_all_presets()
    built_in = [name for name in workarounds if name in list_preset_names()]
    own_presets = [name for name in workarounds if name not in built_in and name in presets]
    wishes = PatchSet(preset=presets.get(strategy, {}))
    made = build_layers(strategy, template, workarounds=built_in, patches=wishes)
    above = tuple(layer for layer in made if layer[0].startswith("preset "))
    below = tuple(layer for layer in made if layer not in above)
    added = tuple((f"workaround {name}", presets[name]) for name in own_presets) if strategy == "production" else ()
    return (*below, *added), above


def _find_frozen_layers(row: RunConfig, strategy: str) -> tuple[Layers, Layers] | None:
    """Return the layers of the same model's configuration under that strategy; None if its run has none."""
    same = RunConfig.objects.filter(run_id=row.run_id, provider_name=row.provider_name, model_name=row.model_name)
    beside = same.filter(strategy=strategy).first()
    if beside is None:
        return None
    layers = [(name, patch) for name, patch in beside.layers if _is_strategy_layer(name)]
    above = tuple(layer for layer in layers if layer[0].startswith("preset "))
    return tuple(layer for layer in layers if layer not in above), above


def _get_model_facts(row: RunConfig) -> tuple[str, tuple[str, ...]]:
    """Return the provider's template and the model's workarounds as they are now.

    For a deleted model, those of a model with the same names, or else the workarounds that the engine knows by its
    name.
    """
    named = Model.objects.select_related("provider").filter(name=row.model_name, provider__name=row.provider_name)
    model = row.model or named.first()
    if model is None:
        return "", list_model_workarounds(row.model_name)
    return model.provider.template, tuple(model.workarounds)


def _is_strategy_layer(name: str) -> bool:
    return name.partition(" ")[0] in _STRATEGY_LAYERS and name != _NON_STRATEGY_LAYER


def _is_valid_limit(given: str) -> bool:
    return given.isascii() and given.isdigit() and len(given) <= 8 and 1 <= int(given) <= MAX_LIMIT
