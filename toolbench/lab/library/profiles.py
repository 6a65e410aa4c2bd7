"""Own sampling profiles: what their page shows, created, copied, edited with versions, deleted."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count
from django.utils import timezone

from toolbench.engine.policy.layered_key import RESERVED_KEYS
from toolbench.engine.types import JsonObject
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.library.names import build_copy_name, find_name_error
from toolbench.lab.library.values import is_same, render_indented
from toolbench.lab.library.versions import (
    EntryVersion,
    VersionDifference,
    compare_versions,
    list_versions,
    save_first_version,
    save_version,
)
from toolbench.lab.models import Model, RunConfig, SamplingProfile

MAX_PATTERN_CHARACTERS = 200
_REFUSED_OPTIONS = RESERVED_KEYS | {"stream"}  # a run decides these


@dataclass(frozen=True, slots=True)
class SamplingOption:
    """A sampling option with a field of its own; others are typed as JSON.

    Attributes:
        kind: number, whole, flag or choice.
        least: the smallest value of a number.
        most: the largest value of a number.
        choices: the values of a choice.
    """

    name: str
    kind: str
    least: float = 0
    most: float = 0
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
class ProfilePage:
    """Data of the page of one sampling profile.

    Attributes:
        versions: newest first; the first is what the next run uses.
        difference: between the chosen versions; None with one version.
        sent: the options of the chosen version as JSON.
        models: names of the models that it applies to.
        others: names of all profiles that are not archived.
    """

    profile: SamplingProfile
    versions: tuple[EntryVersion, ...]
    difference: VersionDifference | None
    sent: str
    models: tuple[str, ...]
    others: tuple[SamplingProfile, ...]

    @property
    def editable(self) -> bool:
        """Whether it can be changed: built-in and archived profiles cannot."""
        return not self.profile.builtin and self.profile.archived_at is None


def get_profile_page(name: str, old: int | None = None, new: int | None = None) -> ProfilePage:
    """Return the data of a profile's page with five queries.

    Raises:
        SamplingProfile.DoesNotExist: there is no such profile.
    """
    profile = SamplingProfile.objects.get(name=name)
    versions = _count_runs(profile, list_versions(profile))
    models = Model.objects.filter(retired=False).values_list("name", flat=True).order_by("name").distinct()
    return ProfilePage(
        profile=profile,
        versions=versions,
        difference=compare_versions(versions, old, new),
        sent=render_indented(profile.options),
        models=tuple(model for model in models if fnmatchcase(model, profile.applies_to)),
        others=tuple(SamplingProfile.objects.filter(archived_at=None)),
    )


def build_copy(name: str) -> Mapping[str, Any]:
    """Return name and content of a copy of a profile, not saved.

    Raises:
        SamplingProfile.DoesNotExist: there is no such profile.
    """
    profile = SamplingProfile.objects.get(name=name)
    taken = set(SamplingProfile.objects.values_list("name", flat=True))
    return {
        "name": build_copy_name(name, taken),
        "options": profile.options,
        "applies_to": profile.applies_to,
        "tags": profile.tags,
    }


def create_profile(name: str, content: JsonObject, username: str) -> SamplingProfile:
    """Save a new profile with its first version.

    Raises:
        InvalidFieldsError: the name or an option is not accepted.
    """
    taken = set(SamplingProfile.objects.values_list("name", flat=True))
    if name_error := find_name_error(name, taken):
        raise InvalidFieldsError({"name": [name_error]})
    _check_options(content["options"])
    try:
        with transaction.atomic():
            profile = SamplingProfile.objects.create(name=name, **content)
            save_first_version(profile, username)
    except IntegrityError as error:
        raise InvalidFieldsError({"name": [f"Somebody has just saved a profile {name}. Choose another."]}) from error
    return profile


def edit_profile(profile: SamplingProfile, content: JsonObject, *, read_number: int, username: str) -> int:
    """Save a new version of a profile and return its number. Runs keep the options that they froze.

    Raises:
        InvalidFieldsError: the profile is built in or archived, an option is not accepted, or another version was
            saved meanwhile.
    """
    if profile.builtin or profile.archived_at:
        raise InvalidFieldsError({"name": ["Built-in and archived profiles stay as they are: copy it."]})
    _check_options(content["options"])
    return save_version(profile, content, read_number=read_number, username=username)


def delete_profile(profile: SamplingProfile) -> bool:
    """Delete a profile, or archive it if a run used it; return whether it was archived.

    Raises:
        InvalidFieldsError: the profile is built in.
    """
    if profile.builtin:
        raise InvalidFieldsError({"name": ["Built-in profiles cannot be deleted."]})
    if not RunConfig.objects.filter(profile=profile.name).exists():
        profile.delete()
        return False
    SamplingProfile.objects.filter(pk=profile.pk).update(archived_at=timezone.now())
    return True


def _check_options(options: JsonObject) -> None:
    refused = sorted(_REFUSED_OPTIONS & options.keys())
    if refused:
        raise InvalidFieldsError({"more": [f"A run decides {', '.join(refused)}: remove it."]})


def _count_runs(profile: SamplingProfile, versions: tuple[EntryVersion, ...]) -> tuple[EntryVersion, ...]:
    """Add to each version the number of runs that froze its options."""
    configs = RunConfig.objects.filter(profile=profile.name, run__deleted_at=None, run__imported=False)
    found = list(configs.order_by().values_list("options").annotate(runs=Count("run", distinct=True)))
    return tuple(
        replace(
            version, runs=sum(runs for options, runs in found if is_same(options, version.content.get("options", {})))
        )
        for version in versions
    )
