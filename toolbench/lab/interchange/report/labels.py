"""Labels of configurations in a report.

A label consists of the model and of those settings that vary in the run, such as `llama:baseline:native`. If the
profile does not vary, it is included unless it is `default`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count

from toolbench.lab.models import RunConfig
from toolbench.lab.planning.strategies import ADD_PRESET, REMOVE_WORKAROUND, parse_strategy

TAG_FALLBACK = "content_tag_tool_call_fallback"  # preset that parses calls between tags in the text
_UNSAFE_CHARS = re.compile(r"[^a-zA-Z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class ConfigLabel:
    """Names of a configuration in a report.

    Attributes:
        label: name that is unique in the run.
        file_prefix: first part of the file names of its trials, unique in the run.
        strategy: the strategy without the tag fallback.
        fallback_profile: "fallback_on", "fallback_off" or "best_effort".
    """

    label: str
    file_prefix: str
    strategy: str
    fallback_profile: str


def build_config_labels(configs: Sequence[RunConfig]) -> dict[int, ConfigLabel]:
    """Return the labels of a run's configurations, by configuration id."""
    strategy_and_fallback_by_id = {config.pk: split_strategy(config.strategy) for config in configs}
    varying_dimensions = _find_varying_dimensions(configs, strategy_and_fallback_by_id)
    labels = _make_unique(
        [
            ":".join(_list_label_parts(config, strategy_and_fallback_by_id[config.pk], varying_dimensions))
            for config in configs
        ],
        "#",
    )
    file_prefixes = _make_unique([sanitise_file_name(label) for label in labels], "__")
    return {
        config.pk: ConfigLabel(label, file_prefix, *strategy_and_fallback_by_id[config.pk])
        for config, label, file_prefix in zip(configs, labels, file_prefixes, strict=True)
    }


def split_strategy(strategy: str) -> tuple[str, str]:
    """Return the strategy without the tag fallback, and the fallback profile.

    The fallback profile is "fallback_on" if the strategy adds the tag fallback, "fallback_off" if it removes it, else
    "best_effort".
    """
    parsed_strategy = parse_strategy(strategy)
    for sign, names, profile in (
        (ADD_PRESET, parsed_strategy.added_presets, "fallback_on"),
        (REMOVE_WORKAROUND, parsed_strategy.removed_workarounds, "fallback_off"),
    ):
        if TAG_FALLBACK in names:
            return strategy.replace(f"{sign}{TAG_FALLBACK}", ""), profile
    return strategy, "best_effort"


def sanitise_file_name(text: str) -> str:
    """Replace each sequence of characters other than ASCII letters, digits, `_`, `.` and `-` by `__`.

    The case study has the same rule.
    """
    return _UNSAFE_CHARS.sub("__", text)


def _find_varying_dimensions(
    configs: Sequence[RunConfig], strategy_and_fallback_by_id: dict[int, tuple[str, str]]
) -> set[str]:
    profiles = {config.profile for config in configs}
    providers = {(config.model_name, config.provider_name) for config in configs}
    is_varying_by_name = {
        "profile": len(profiles) > 1 or profiles != {"default"},
        "strategy": len({strategy for strategy, _ in strategy_and_fallback_by_id.values()}) > 1,
        "fallback": len({fallback for _, fallback in strategy_and_fallback_by_id.values()}) > 1,
        "method": len({config.method for config in configs}) > 1,
        "examples": len({config.examples for config in configs}) > 1,
        "stream": len({config.stream for config in configs}) > 1,
        "provider": len(providers) > len({model for model, _ in providers}),
    }
    return {name for name, is_varying in is_varying_by_name.items() if is_varying}


def _list_label_parts(
    config: RunConfig, strategy_and_fallback: tuple[str, str], varying_dimensions: set[str]
) -> list[str]:
    strategy, fallback = strategy_and_fallback
    dimensions = {
        "profile": config.profile,
        "strategy": strategy,
        "fallback": fallback,
        "method": config.method,
        "examples": config.examples or "no_examples",
        "stream": "streamed" if config.stream else "not_streamed",
        "provider": config.provider_name,
    }
    return [config.model_name, *(value for name, value in dimensions.items() if name in varying_dimensions)]


def _make_unique(names: Sequence[str], separator: str) -> list[str]:
    """Return the names in order; a name that occurred before gets a number from 2, such as `llama#2`.

    Names are compared without case, since some file systems ignore case.
    """
    taken_names: set[str] = set()
    unique_names = []
    for name in names:
        numbered = (f"{name}{separator}{number}" for number in count(2))
        free_name = next(candidate for candidate in chain([name], numbered) if candidate.lower() not in taken_names)
        taken_names.add(free_name.lower())
        unique_names.append(free_name)
    return unique_names
