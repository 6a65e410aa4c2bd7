"""The registry of built-in scenarios, and the words that select them."""

from collections.abc import Sequence
from functools import cache

from toolbench.evals.scenarios import agents, control, intent, packs, state, weather
from toolbench.evals.types import Scenario

PACKS = ("agents", *packs.PACKS)
TYPICAL_SLUGS = ("happy_path", "missing_workspace_id", "type_error_recovery", "long_arguments_guard", "chat_only")
_CASE_STUDY_SLUGS = (
    "happy_path",
    "partial_success_failure",
    "missing_workspace_id",
    "type_error_recovery",
    "happy_path_parallel",
    "long_arguments_guard",
    "tool_output_truncation",
    "chat_only",
)
SETS = ("simple", "typical", "extreme", "all")  # the names that pages show; other keys of _SLUGS_BY_SET are synonyms
_SLUGS_BY_SET = {
    **dict.fromkeys(("default", "smoke", "typical"), TYPICAL_SLUGS),
    "simple": ("happy_path", "chat_only"),
    "extreme": (*TYPICAL_SLUGS, "partial_success_failure", "tool_output_truncation"),
    **dict.fromkeys(("all", "full", "*"), _CASE_STUDY_SLUGS),
}


@cache
def list_scenarios() -> tuple[Scenario, ...]:
    """Return all built-in scenarios: the eight of the case study in its order, then the others by group."""
    scenarios: list[Scenario] = [
        *state.load_scenarios(),
        *control.load_scenarios(),
        weather.WeatherScenario(),
        intent.IntentScenario(),
        *agents.load_scenarios(),
        *packs.load_scenarios(),
    ]
    by_slug = {scenario.slug: scenario for scenario in scenarios}
    others = [scenario for scenario in scenarios if scenario.slug not in _CASE_STUDY_SLUGS]
    return (*(by_slug[slug] for slug in _CASE_STUDY_SLUGS), *others)


def lookup_scenario(slug: str, version: int | None = None) -> Scenario:
    """Return a scenario in its newest version, or in the given one.

    Trials that were launched with an earlier version are finished, replayed and judged with that version.

    Raises:
        KeyError: The slug, or this version of it, is unknown.
    """
    versions_by_slug = _index_versions()
    if slug not in versions_by_slug:
        raise KeyError(f"there is no scenario {slug}; there are {', '.join(versions_by_slug)}")
    if version is None:
        return versions_by_slug[slug][0]
    scenario = next((scenario for scenario in versions_by_slug[slug] if scenario.version == version), None)
    if scenario is None:
        raise KeyError(f"there is no version {version} of scenario {slug}")
    return scenario


def is_published(slug: str) -> bool:
    """Return whether the scenario is one of the case study, which published its wording."""
    return slug in _CASE_STUDY_SLUGS


def list_versions(slug: str) -> tuple[Scenario, ...]:
    """Return every known version of a scenario, the newest first; empty for an unknown slug."""
    return _index_versions().get(slug, ())


@cache
def _index_versions() -> dict[str, tuple[Scenario, ...]]:
    earlier_versions = state.load_scenarios(state.SPELT_OUT_VERSION)
    return {
        scenario.slug: (scenario, *(earlier for earlier in earlier_versions if earlier.slug == scenario.slug))
        for scenario in list_scenarios()
    }


def group_scenarios() -> dict[str, tuple[Scenario, ...]]:
    """Return the scenarios by group; groups and scenarios are in the order of `list_scenarios`."""
    names = dict.fromkeys(scenario.group for scenario in list_scenarios())
    return {name: tuple(scenario for scenario in list_scenarios() if scenario.group == name) for name in names}


def select_scenarios(selection: str | Sequence[str]) -> tuple[Scenario, ...]:
    """Return the scenarios that names of sets, groups and scenarios select, in the order of `list_scenarios`.

    Case is ignored, and so are unknown words. If no word is known, the result is that of `typical`. The word `all`
    selects only the eight scenarios of the case study.

    Args:
        selection: The words, separated by commas or as a sequence.
    """
    words = selection.split(",") if isinstance(selection, str) else selection
    slugs_by_word = _index_slugs_by_word()
    slugs = {slug for word in words for slug in slugs_by_word.get(word.strip().lower(), (word.strip().lower(),))}
    selected = tuple(scenario for scenario in list_scenarios() if scenario.slug in slugs)
    return selected or tuple(scenario for scenario in list_scenarios() if scenario.slug in TYPICAL_SLUGS)


def list_unknown_words(selection: str | Sequence[str]) -> tuple[str, ...]:
    """Return the words of a selection that `select_scenarios` ignores, for a warning."""
    words = selection.split(",") if isinstance(selection, str) else selection
    known_words = set(list_words())
    return tuple(word.strip() for word in words if word.strip() and word.strip().lower() not in known_words)


def list_words() -> tuple[str, ...]:
    """Return every word that `select_scenarios` knows."""
    return (*_index_slugs_by_word(), *_index_versions())


@cache
def _index_slugs_by_word() -> dict[str, tuple[str, ...]]:
    """Return the slugs of every group and set by its name; a set takes precedence over a group of the same name."""
    by_group = {name: tuple(scenario.slug for scenario in group) for name, group in group_scenarios().items()}
    return {**by_group, **_SLUGS_BY_SET}
