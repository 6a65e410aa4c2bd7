"""Sampling profiles of the library: their page, and functions to create, edit and delete them."""

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from django.db.models import Count

from toolbench.engine.policy.layered_key import RESERVED_KEYS
from toolbench.engine.types import JsonObject
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.library.entries import EntryFunctions, EntryPage, create_entry, delete_entry, edit_entry, list_active
from toolbench.lab.library.values import is_same, render_indented
from toolbench.lab.library.versions import EntryVersion, compare_versions, list_versions
from toolbench.lab.models import Model, RunConfig, SamplingProfile

MAX_PATTERN_CHARACTERS = 200
_REFUSED_OPTIONS = RESERVED_KEYS | {"stream"}  # the run sets them


@dataclass(frozen=True, slots=True)
class SamplingOption:
    """Sampling option with a form field. Options without a form field are entered as JSON.

    Attributes:
        kind: "number", "whole" (an integer), "flag" (a Boolean) or "choice".
        minimum: smallest value of a number or an integer.
        maximum: largest value of a number or an integer.
        choices: the values of a "choice".
    """

    name: str
    kind: str
    minimum: float = 0
    maximum: float = 0
    choices: tuple[str, ...] = ()


SAMPLING_OPTIONS = (
    SamplingOption("temperature", "number", 0, 5),
    SamplingOption("top_p", "number", 0, 1),
    SamplingOption("top_k", "whole", -1, 1_000_000),
    SamplingOption("min_p", "number", 0, 1),
    SamplingOption("max_tokens", "whole", 1, 10_000_000),
    SamplingOption("seed", "whole", 0, 2**31 - 1),
    SamplingOption("presence_penalty", "number", -2, 2),
    SamplingOption("frequency_penalty", "number", -2, 2),
    SamplingOption("repetition_penalty", "number", 0, 10),
    SamplingOption("parallel_tool_calls", "flag"),
    SamplingOption("reasoning_effort", "choice", choices=("none", "minimal", "low", "medium", "high", "xhigh")),
)
OPTION_NAMES = tuple(option.name for option in SAMPLING_OPTIONS)


@dataclass(frozen=True, slots=True)
class ProfilePage(EntryPage[SamplingProfile]):
    """Data of the page of one sampling profile.

    Attributes:
        options_json: options of the newest version as indented JSON.
        models: names of the models that the profile applies to, except retired models.
    """

    options_json: str
    models: tuple[str, ...]


def get_profile_page(name: str, old: int | None = None, new: int | None = None) -> ProfilePage:
    """Return the data of a profile's page with five queries.

    Args:
        name: name of the profile.
        old: number of the version to compare with; None for the one before the newest.
        new: number of the version that is compared with `old`; None for the newest.

    Raises:
        SamplingProfile.DoesNotExist: there is no such profile.
    """
    profile = SamplingProfile.objects.get(name=name)
    versions = _count_runs(profile, list_versions(profile))
    models = Model.objects.filter(retired=False).values_list("name", flat=True).order_by("name").distinct()
    return ProfilePage(
        entry=profile,
        versions=versions,
        difference=compare_versions(versions, old, new),
        active_entries=list_active(SamplingProfile),
        options_json=render_indented(profile.options),
        models=tuple(model for model in models if fnmatchcase(model, profile.applies_to)),
    )


def create_profile(name: str, content: JsonObject, username: str) -> SamplingProfile:
    """Save a new profile with its first version.

    Raises:
        InvalidFieldsError: the name or an option is not accepted.
    """
    _check_options(content["options"])
    return create_entry(SamplingProfile(name=name, **content), username)


def edit_profile(profile: SamplingProfile, content: JsonObject, read_number: int, username: str) -> int:
    """Save a new version of a profile and return its number. Runs keep the options that they froze.

    Raises:
        InvalidFieldsError: the profile is built in or archived, an option is not accepted, or another version was
            saved meanwhile.
    """
    _check_options(content["options"])
    return edit_entry(profile, content, read_number, username)


def delete_profile(profile: SamplingProfile) -> bool:
    """Delete a profile, or archive it if a run used it; return whether it was archived.

    Raises:
        InvalidFieldsError: the profile is built in.
    """
    return delete_entry(profile, is_used=RunConfig.objects.filter(profile=profile.name).exists())


PROFILE_FUNCTIONS = EntryFunctions("sampling profile", SamplingProfile, create_profile, edit_profile, delete_profile)


def _check_options(options: JsonObject) -> None:
    refused = sorted(_REFUSED_OPTIONS & options.keys())
    if refused:
        raise InvalidFieldsError({"more": [f"Remove {', '.join(refused)}: a profile cannot set what the run sets."]})


def _count_runs(profile: SamplingProfile, versions: tuple[EntryVersion, ...]) -> tuple[EntryVersion, ...]:
    """Add to each version the number of runs that froze its options."""
    configs = RunConfig.objects.filter(profile=profile.name, run__deleted_at=None, run__imported=False)
    frozen_options = list(configs.order_by().values_list("options").annotate(runs=Count("run", distinct=True)))
    return tuple(
        replace(
            version,
            runs=sum(runs for options, runs in frozen_options if is_same(options, version.content.get("options", {}))),
        )
        for version in versions
    )
