"""Form of a new version that notices a version that was saved meanwhile."""

from django import forms
from django.http import QueryDict

from toolbench.lab.errors import InvalidFieldsError
from toolbench.web.forms.errors import add_form_errors


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
