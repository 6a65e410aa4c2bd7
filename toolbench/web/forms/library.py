"""Base classes of forms: for new versions, and for entries of the library (sampling profiles and presets)."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, Self, TypeVar

from django import forms
from django.http import QueryDict

from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.library.entries import Entry, EntryFunctions, EntryPage, build_copy
from toolbench.lab.library.versions import CONTENT_COLUMNS, read_content
from toolbench.web.forms.errors import add_form_errors

Saved = TypeVar("Saved")


class VersionForm(forms.Form):
    """Form of a new version.

    The field `read_number` has the number of the version that the form was filled in with, so that a version that was
    saved meanwhile is not overwritten.
    """

    read_number = forms.IntegerField(widget=forms.HiddenInput, required=False, min_value=1, max_value=2**31 - 1)

    def add_errors(self, error: InvalidFieldsError) -> None:
        """Add the errors of the lab to the form's fields.

        If another version was saved meanwhile, `read_number` becomes its number, so that the form can be saved again.
        """
        add_form_errors(self, error)
        if "read_number" in error.errors:
            assert isinstance(self.data, QueryDict)
            self.data = self.data.copy()
            self.data["read_number"] = str(self.initial["read_number"])


class EntryForm(VersionForm, Generic[Entry]):
    """Form of a new entry of the library, or of a new version of an entry.

    Attributes:
        functions: functions that create, edit and delete entries of this kind.
    """

    functions: ClassVar[EntryFunctions[Any]]

    name = forms.CharField(label="Name", max_length=80, help_text="Letters, digits, hyphens and underscores.")

    @classmethod
    def for_new(cls, data: QueryDict | None, copied: str = "") -> Self:
        """Return the form of a new entry.

        Args:
            data: values of the sent form; None if none was sent.
            copied: name of an entry whose content fills in the form; empty for none.

        Raises:
            ObjectDoesNotExist: no entry has the name `copied`.
        """
        return cls(data, initial=cls.to_initial(build_copy(cls.functions.entry_class, copied)) if copied else None)

    @classmethod
    def for_version(cls, data: QueryDict | None, page: EntryPage[Entry]) -> Self:
        """Return the form of a new version of an entry; it has no field `name`, since names do not change."""
        initial = cls.to_initial(read_content(page.entry))
        form = cls(data, initial=initial | {"read_number": page.versions[0].number})
        del form.fields["name"]
        return form

    @staticmethod
    def to_initial(content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the initial values of the fields for the content of an entry.

        Override it in a form whose fields differ from the columns of the content.
        """
        return dict(content)

    def build_content(self) -> dict[str, Any] | None:
        """Return the values of the entry's columns; None if the form is empty or has errors."""
        return (
            {name: self.cleaned_data[name] for name in CONTENT_COLUMNS[self.functions.entry_class]}
            if self.is_valid()
            else None
        )

    def create(self, username: str) -> Entry | None:
        """Save a new entry and return it; return None if the form is empty or has errors."""
        return self._save(lambda content: self.functions.create(self.cleaned_data["name"], content, username))

    def edit(self, entry: Entry, username: str) -> int | None:
        """Save a new version and return its number; return None if the form is empty or has errors."""
        return self._save(
            lambda content: self.functions.edit(entry, content, self.cleaned_data["read_number"] or 0, username)
        )

    def _save(self, save: Callable[[dict[str, Any]], Saved]) -> Saved | None:
        content = self.build_content()
        if content is None:
            return None
        try:
            return save(content)
        except InvalidFieldsError as error:
            self.add_errors(error)
            return None
