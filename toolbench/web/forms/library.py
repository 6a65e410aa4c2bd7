"""What the forms of sampling profiles and presets have in common."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, Self, TypeVar

from django import forms
from django.http import QueryDict

from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.library.entries import Entry, EntryPage, build_copy
from toolbench.lab.library.versions import read_content
from toolbench.web.forms.errors import add_form_errors

Saved = TypeVar("Saved")


class EntryForm(forms.Form, Generic[Entry]):
    """Form of a new entry of the library, or of a new version of an entry."""

    entry_class: ClassVar[type[Any]]

    name = forms.CharField(label="Name", max_length=80, help_text="Letters, digits, hyphens and underscores.")
    read_number = forms.IntegerField(widget=forms.HiddenInput, required=False, min_value=1, max_value=2**31 - 1)

    @classmethod
    def for_new(cls, data: QueryDict | None, copied: str = "") -> Self:
        """Return the form of a new entry: as typed, or a copy of another entry, or empty.

        Raises:
            ObjectDoesNotExist: there is no entry to copy.
        """
        return cls(data, initial=cls.to_initial(build_copy(cls.entry_class, copied)) if copied else None)

    @classmethod
    def for_version(cls, data: QueryDict | None, page: EntryPage[Entry]) -> Self:
        """Return the form of a new version of an entry."""
        initial = cls.to_initial(read_content(page.entry))
        form = cls(data, initial=initial | {"read_number": page.versions[0].number})
        del form.fields["name"]
        return form

    @staticmethod
    def to_initial(content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the initial values of the fields for the content of an entry."""
        raise NotImplementedError

    def build_content(self) -> dict[str, Any] | None:
        """Return the content as typed; None if the form is empty or has errors."""
        raise NotImplementedError

    def save_new(self, name: str, content: dict[str, Any], username: str) -> Entry:
        """Save a new entry.

        Raises:
            InvalidFieldsError: something is not accepted.
        """
        raise NotImplementedError

    def save_version(self, entry: Entry, content: dict[str, Any], username: str, read_number: int) -> int:
        """Save a new version of an entry and return its number.

        Raises:
            InvalidFieldsError: something is not accepted.
        """
        raise NotImplementedError

    def create(self, username: str) -> Entry | None:
        """Save the entry as new; return None if the form is empty or has errors."""
        return self._save(lambda content: self.save_new(self.cleaned_data["name"], content, username))

    def edit(self, entry: Entry, username: str) -> int | None:
        """Save a new version and return its number; return None if the form is empty or has errors."""
        return self._save(
            lambda content: self.save_version(entry, content, username, self.cleaned_data["read_number"] or 0)
        )

    def add_errors(self, error: InvalidFieldsError) -> None:
        """Show why the entry was not saved."""
        add_form_errors(self, error)

    def _save(self, save: Callable[[dict[str, Any]], Saved]) -> Saved | None:
        content = self.build_content()
        if content is None:
            return None
        try:
            return save(content)
        except InvalidFieldsError as error:
            self.add_errors(error)
            return None
