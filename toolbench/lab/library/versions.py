"""Versions of an entry of the library: list, comparison and saving.

The next run uses the row of the entry. A version is a copy of columns of this row and never changes.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction

from toolbench.engine.policy.layered_key import iterate_leaves
from toolbench.engine.types import JsonObject
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.library.values import is_same, render_indented, render_value
from toolbench.lab.models import LibraryVersion, Model, Preset, SamplingProfile

Entry = TypeVar("Entry", SamplingProfile, Preset, Model)
CONTENT_COLUMNS: Mapping[type, tuple[str, ...]] = {
    SamplingProfile: ("options", "applies_to", "tags"),
    Preset: ("patch", "description"),
    Model: ("workarounds", "capabilities", "price"),
}
_NOT_SET = "not set"


@dataclass(frozen=True, slots=True)
class EntryVersion:
    """Content of an entry from one save to the next.

    Attributes:
        username: the person who saved it; empty if nobody was signed in or Toolbench saved it.
        created_at: when it was saved; None if it was not saved in the library.
        runs: number of runs that froze the patch or the options of this content, without deleted and imported runs; 0
            if the runs are not counted, as for settings of a model.
    """

    number: int
    content: JsonObject
    username: str = ""
    created_at: datetime | None = None
    runs: int = 0

    @property
    def text(self) -> str:
        """The content as indented JSON."""
        return render_indented(self.content)


@dataclass(frozen=True, slots=True)
class ChangedSetting:
    """Setting that differs between two versions, with both values as JSON or as "not set"."""

    name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class VersionDifference:
    """The settings that differ between two versions.

    Attributes:
        old: number of the version with the values `ChangedSetting.old`.
        new: number of the version with the values `ChangedSetting.new`.
        settings: the settings that differ, in the order of their names.
    """

    old: int
    new: int
    settings: tuple[ChangedSetting, ...]


def read_content(entry: SamplingProfile | Preset | Model) -> JsonObject:
    """Return the columns of an entry that its versions copy, with their values."""
    return {name: getattr(entry, name) for name in CONTENT_COLUMNS[type(entry)]}


def list_versions(entry: SamplingProfile | Preset | Model) -> tuple[EntryVersion, ...]:
    """Return all versions, newest first, with one query, or without a query if `entry.versions` is prefetched.

    The newest version has the present content of the entry. If the library did not save this content, as with an
    adopted preset, the newest version is not stored.
    """
    stored = [EntryVersion(row.number, row.content, row.username, row.created_at) for row in entry.versions.all()]
    content = read_content(entry)
    if stored and is_same(stored[0].content, content):
        return tuple(stored)
    return (EntryVersion(stored[0].number + 1 if stored else 1, content), *stored)


def save_version(entry: Entry, content: JsonObject, *, read_number: int, username: str) -> int:
    """Save the content as a new version and return its number. Unchanged content creates no version.

    Args:
        entry: the entry, saved.
        content: the new values of the columns in CONTENT_COLUMNS, by column name.
        read_number: number of the version that the person has read and changed.
        username: the person who changed it.

    Raises:
        InvalidFieldsError: another version was saved meanwhile.
    """
    content = json.loads(json.dumps(content))  # as the database returns it: tuples become lists, keys become strings
    with transaction.atomic():
        locked_entry = type(entry)._default_manager.select_for_update().get(pk=entry.pk)
        newest = list_versions(locked_entry)[0]
        if newest.number != read_number:
            name, number = newest.username, newest.number
            news = f"{name} saved version {number}" if name else f"Version {number} was saved"
            message = f"{news} meanwhile. Your input is kept: compare, then save again."
            raise InvalidFieldsError({"read_number": [message]})
        if is_same(newest.content, content):
            return newest.number
        if newest.created_at is None:
            _store_version(locked_entry, newest.number, newest.content, "")
        _store_version(locked_entry, newest.number + 1, content, username)
        for name, value in content.items():
            setattr(locked_entry, name, value)
        locked_entry.save(update_fields=list(content))
    return newest.number + 1


def save_first_version(entry: SamplingProfile | Preset, username: str) -> None:
    """Store the content of a new entry as its version 1."""
    _store_version(entry, 1, read_content(entry), username)


def compare_versions(versions: tuple[EntryVersion, ...], old: int | None, new: int | None) -> VersionDifference | None:
    """Return the difference between two versions.

    Args:
        versions: all versions, newest first.
        old: number of a version; None or an unknown number stands for the version before the newest.
        new: number of a version; None or an unknown number stands for the newest version.

    Returns:
        The difference; None if there is only one version.
    """
    if len(versions) < 2:
        return None
    by_number = {version.number: version for version in versions}
    before, after = by_number.get(old or 0, versions[1]), by_number.get(new or 0, versions[0])
    old_values, new_values = dict(_iter_settings(before.content)), dict(_iter_settings(after.content))
    settings = tuple(
        ChangedSetting(name, _render(old_values, name), _render(new_values, name))
        for name in sorted(old_values.keys() | new_values.keys())
        if _render(old_values, name) != _render(new_values, name)
    )
    return VersionDifference(before.number, after.number, settings)


def _iter_settings(content: JsonObject) -> Iterator[tuple[str, Any]]:
    """Yield the name of each setting as pages show it, `temperature` and not `options.temperature`, and its value."""
    for column, value in content.items():
        if column in ("options", "patch", "capabilities", "price") and isinstance(value, dict):
            prefix = "price." if column == "price" else ""
            yield from iterate_leaves(value, prefix)
        else:
            yield column, value


def _render(values: Mapping[str, Any], name: str) -> str:
    return render_value(values[name]) if name in values else _NOT_SET


def _build_entry_column(entry: SamplingProfile | Preset | Model) -> dict[str, Any]:
    """Return an entry by the name of its foreign key in LibraryVersion: `{"preset": entry}` for a preset."""
    column = {SamplingProfile: "profile", Preset: "preset", Model: "model"}[type(entry)]
    return {column: entry}


def _store_version(entry: SamplingProfile | Preset | Model, number: int, content: JsonObject, username: str) -> None:
    LibraryVersion.objects.create(**_build_entry_column(entry), number=number, content=content, username=username)
