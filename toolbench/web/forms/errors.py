"""Conversion of errors of the lab into form errors, and forms that notice changes by other users."""

from django import forms
from django.http import QueryDict

from toolbench.lab.errors import InvalidFieldsError


def add_form_errors(form: forms.Form, error: InvalidFieldsError) -> None:
    """Add each error to its field, or to the form as a whole if the form has no such field.

    A field that has an error already gets no other one.
    """
    invalid_names = set(form.errors)
    for name, sentences in error.errors.items():
        for sentence in sentences if name not in invalid_names else ():
            form.add_error(name if name in form.fields else None, sentence)


class VersionForm(forms.Form):
    """Form of a new version.

    The field `read_number` has the number of the version that the form was filled in with, so that a version that was
    saved meanwhile is not overwritten.
    """

    read_number = forms.IntegerField(widget=forms.HiddenInput, required=False, min_value=1, max_value=2**31 - 1)

    def add_errors(self, error: InvalidFieldsError) -> None:
        """Add the errors of the lab to the form's fields.

        After a conflict, `read_number` becomes the newest number, so that the form can be saved again.
        """
        add_form_errors(self, error)
        if "read_number" in error.errors:
            assert isinstance(self.data, QueryDict)
            self.data = self.data.copy()
            self.data["read_number"] = str(self.initial["read_number"])
