"""Forms for drafts of cases from recorded traffic."""

from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from toolbench.lab.interchange.traffic.drafts import TrafficImport, import_traffic
from toolbench.lab.interchange.traffic.reading import MAX_FILE_BYTES
from toolbench.lab.interchange.traffic.review import accept_drafts, reject_drafts
from toolbench.lab.query_params import parse_whole_number


class TrafficForm(forms.Form):
    """Form for a file of recorded traffic."""

    file = forms.FileField(label="File")

    def clean_file(self) -> "UploadedFile[Any]":
        """Refuse a file that is too large."""
        file: UploadedFile[Any] = self.cleaned_data["file"]
        if (file.size or 0) > MAX_FILE_BYTES:
            raise forms.ValidationError(
                f"The file has {file.size:,} bytes; {MAX_FILE_BYTES:,} are taken. Nothing was saved: split it."
            )
        return file

    def save(self) -> TrafficImport | None:
        """Import the file; None if the form has errors."""
        if not self.is_valid():
            return None
        file = self.cleaned_data["file"]
        return import_traffic(file.read(), file.name or "")


class DraftReviewForm(forms.Form):
    """Decision about drafts: the chosen ones, or all that are open."""

    set = forms.CharField(label="Set", max_length=80, required=False)
    decision = forms.ChoiceField(choices=[("accept", "Accept"), ("reject", "Reject")])
    all = forms.BooleanField(required=False)

    def save(self, chosen: list[str]) -> str:
        """Accept or reject the drafts and return what was done, in a sentence.

        Args:
            chosen: primary keys as sent; what is none is passed over.
        """
        if not self.is_valid():
            return "Nothing was changed: choose Accept or Reject, and a name of at most 80 characters for the set."
        ids = [number for text in chosen if (number := parse_whole_number(text)) is not None]
        if not ids and not self.cleaned_data["all"]:
            return "Nothing was changed: choose at least one draft."
        chosen_ids = None if self.cleaned_data["all"] else ids
        if self.cleaned_data["decision"] == "accept":
            count = accept_drafts(chosen_ids, self.cleaned_data["set"])
            return f"{count:,} cases made." if count != 1 else "1 case made."
        count = reject_drafts(chosen_ids)
        return f"{count:,} drafts rejected." if count != 1 else "1 draft rejected."
