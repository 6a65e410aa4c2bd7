"""Names of profiles in the grid, without the name of their model, and the columns of model × profile."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from toolbench.lab.results.matrix.grid_types import GridColumn

DEFAULT_PROFILE = "default"
ModelProfile = tuple[str, str]  # name of the model without its vendor, and name of the profile


def shorten_profiles(pairs: Iterable[ModelProfile]) -> Mapping[ModelProfile, str]:
    """Return the short name of each profile: without the name of its model at the beginning.

    The short name of `glm_4_7_recommended` is `recommended` for the model `glm-4.7`. A profile keeps its name if the
    model also has a profile with the short name, or if the rest is "default" (the name of another profile), begins with
    a digit (which belongs to the name of another model) or is empty.
    """
    profiles_by_model: dict[str, set[str]] = defaultdict(set)
    for model, profile in pairs:
        profiles_by_model[model].add(profile)
    names = {}
    for model, profiles in profiles_by_model.items():
        prefix = re.sub(r"[^a-z0-9]+", "_", model.partition(":")[0].lower()) + "_"
        for profile in profiles:
            name = profile.removeprefix(prefix)
            keeps_name = not name or name == DEFAULT_PROFILE or name[0].isdigit() or name in profiles
            names[model, profile] = profile if keeps_name else name
    return names


def build_profile_columns(short_names: Mapping[ModelProfile, str]) -> tuple[GridColumn, ...]:
    """Return a column without a total for each short name of a profile, `default` first.

    Args:
        short_names: result of `shorten_profiles`. Profiles of different models with one short name share a column; its
            aliases are their whole names.
    """
    profiles_by_name: dict[str, set[str]] = defaultdict(set)
    for (_, profile), name in short_names.items():
        profiles_by_name[name].add(profile)
    return tuple(
        GridColumn(name, name, "Sampling profile", False, None, tuple(sorted(profiles_by_name[name])))
        for name in sorted(profiles_by_name, key=lambda name: (name != DEFAULT_PROFILE, name))
    )
