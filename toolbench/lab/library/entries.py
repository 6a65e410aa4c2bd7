"""Functions that create, copy, edit, delete and archive sampling profiles and presets of the library."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db import IntegrityError, transaction
from django.utils import timezone

from toolbench.engine.types import JsonObject
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.library.names import build_copy_name, find_name_error
from toolbench.lab.library.versions import (
    EntryVersion,
    VersionDifference,
    read_content,
    save_first_version,
    save_version,
)
from toolbench.lab.models import Preset, SamplingProfile

Entry = TypeVar("Entry", SamplingProfile, Preset)


@dataclass(frozen=True, slots=True)
class EntryPage(Generic[Entry]):
    """Data of the page of one entry.

    Attributes:
        versions: newest first; the next run uses the first.
        difference: difference between the chosen versions; None if there is only one version.
        active_entries: all entries of this kind that are not archived.
    """

    entry: Entry
    versions: tuple[EntryVersion, ...]
    difference: VersionDifference | None
    active_entries: tuple[Entry, ...]

    @property
    def editable(self) -> bool:
        """Whether the entry can be changed; built-in and archived entries cannot."""
        return not self.entry.builtin and self.entry.archived_at is None


@dataclass(frozen=True, slots=True)
class EntryFunctions(Generic[Entry]):
    """Functions that change the entries of one kind, sampling profiles or presets.

    Attributes:
        noun: name of the kind in sentences, such as "preset".
        create: saves a new entry, given its name, its content and the username.
        edit: saves a new version, given the entry, its content, the version that was read and the username; returns the
            number of the new version.
        delete: deletes or archives an entry; returns whether it was archived.
    """

    noun: str
    entry_class: type[Entry]
    create: Callable[[str, JsonObject, str], Entry]
    edit: Callable[[Entry, JsonObject, int, str], int]
    delete: Callable[[Entry], bool]


def list_active(entry_class: type[Entry]) -> tuple[Entry, ...]:
    """Return the entries of a kind that are not archived."""
    return tuple(entry_class._default_manager.filter(archived_at=None))


def build_copy(entry_class: type[Entry], name: str) -> dict[str, Any]:
    """Return the name and content of a copy of an entry, without saving the copy.

    Raises:
        ObjectDoesNotExist: there is no entry of this name.
    """
    entry = entry_class._default_manager.get(name=name)
    return {"name": build_copy_name(name, _list_names(entry_class)), **read_content(entry)}


def create_entry(entry: Entry, username: str, reserved: Collection[str] = ()) -> Entry:
    """Save a new entry with its first version and return the entry.

    Args:
        entry: the entry, not saved.
        username: the person who created it.
        reserved: names that no entry may have, in lower case and with underscores instead of hyphens.

    Raises:
        InvalidFieldsError: the name is taken, reserved or has characters that are not allowed.
    """
    if name_error := find_name_error(entry.name, _list_names(type(entry)), reserved):
        raise InvalidFieldsError({"name": [name_error]})
    try:
        with transaction.atomic():
            entry.save(force_insert=True)
            save_first_version(entry, username)
    except IntegrityError as error:
        message = f"{entry.name} has just been saved by another person. Choose another name."
        raise InvalidFieldsError({"name": [message]}) from error
    return entry


def edit_entry(entry: Entry, content: JsonObject, read_number: int, username: str) -> int:
    """Save a new version of an entry and return its number. Existing runs keep their frozen settings.

    Args:
        entry: the entry, saved.
        content: the new values of its columns in CONTENT_COLUMNS, by column name.
        read_number: number of the version that the person has read and changed.
        username: the person who changed it.

    Raises:
        InvalidFieldsError: the entry is built in or archived, or another version was saved meanwhile.
    """
    if entry.builtin or entry.archived_at:
        raise InvalidFieldsError(
            {"name": ["Built-in and archived entries cannot be changed. Copy the entry and change the copy."]}
        )
    return save_version(entry, content, read_number=read_number, username=username)


def delete_entry(entry: Entry, *, is_used: bool) -> bool:
    """Delete an entry, or archive it if runs used it; return whether it was archived.

    Raises:
        InvalidFieldsError: the entry is built in.
    """
    if entry.builtin:
        raise InvalidFieldsError({"name": ["Built-in entries cannot be deleted."]})
    if not is_used:
        entry.delete()
        return False
    type(entry)._default_manager.filter(pk=entry.pk).update(archived_at=timezone.now())
    return True


def _list_names(entry_class: type[Entry]) -> set[str]:
    return set(entry_class._default_manager.values_list("name", flat=True))
