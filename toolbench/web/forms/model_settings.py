"""Form of a model's settings."""

from typing import Any

from django import forms
from django.http import QueryDict
from django.utils import timezone

from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.library.model_settings import (
    MAX_PRICE,
    MAX_SOURCE_CHARACTERS,
    PRICE_MEMBERS,
    ModelSettingsPage,
    list_capability_docs,
    list_workaround_choices,
    save_model_settings,
)
from toolbench.lab.library.values import MAX_TEXT_CHARACTERS, render_indented
from toolbench.lab.models import Model
from toolbench.web.forms.json_object import JsonObjectField
from toolbench.web.forms.library import VersionForm


def _build_price_field(label: str) -> forms.FloatField:
    return forms.FloatField(
        label=label, required=False, min_value=0, max_value=MAX_PRICE, widget=forms.NumberInput({"step": "any"})
    )


class ModelSettingsForm(VersionForm):
    """Form of a model's settings."""

    workarounds = forms.MultipleChoiceField(
        label="Workarounds",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Presets that strategy production uses for this model.",
    )
    capabilities = JsonObjectField(
        label="Declared capabilities",
        required=False,
        max_length=MAX_TEXT_CHARACTERS,
        widget=forms.Textarea({"rows": 5, "spellcheck": "false", "placeholder": '{"supports_tool_use": true}'}),
        help_text="A JSON object. Probes and measured results override what you declare.",
    )
    input = _build_price_field("Input")
    output = _build_price_field("Output")
    date = forms.DateField(
        label="Price as of", required=False, widget=forms.DateInput({"type": "date"}, format="%Y-%m-%d")
    )
    source = forms.CharField(
        label="Source of the price",
        required=False,
        max_length=MAX_SOURCE_CHARACTERS,
        help_text="The page or contract that states it.",
    )

    def __init__(self, data: QueryDict | None, page: ModelSettingsPage) -> None:
        """Build the form, filled in with the model's settings."""
        model = page.model
        capabilities = render_indented(model.capabilities) if model.capabilities else ""
        initial = {**model.price, "workarounds": model.workarounds, "capabilities": capabilities}
        super().__init__(data, initial={**initial, "read_number": page.versions[0].number})
        field = self.fields["workarounds"]
        assert isinstance(field, forms.MultipleChoiceField)
        field.choices = [(name, name) for name in list_workaround_choices(model.workarounds)]

    @property
    def capability_docs(self) -> tuple[tuple[str, str], ...]:
        """Return the names of the capabilities that can be declared, with their descriptions."""
        return list_capability_docs()

    def clean_capabilities(self) -> dict[str, Any]:
        """Return the declared capabilities, without those that are null."""
        return {name: value for name, value in self.cleaned_data["capabilities"].items() if value is not None}

    def clean(self) -> dict[str, Any]:
        """Check that a price, if any, is complete: both figures, a date that is not in the future, and a source."""
        data = super().clean() or {}
        if any(data.get(name) not in (None, "") for name in PRICE_MEMBERS):
            for name in PRICE_MEMBERS:
                if data.get(name) in (None, "") and name not in self.errors:
                    self.add_error(name, "A price needs both figures, a date and a source. Fill in all four or none.")
        if (date := data.get("date")) and date > timezone.now().date():
            self.add_error("date", "This date is in the future. Enter the day on which the price was read.")
        return data

    def save(self, model: Model, username: str) -> int | None:
        """Save a new version and return its number; return None if the form is empty or has errors."""
        if not self.is_valid():
            return None
        data = self.cleaned_data
        price = {name: data[name] for name in ("input", "output", "source")} | {"date": str(data["date"])}
        content = {
            "workarounds": data["workarounds"],
            "capabilities": data["capabilities"],
            "price": price if data["date"] else {},
        }
        try:
            return save_model_settings(model, content, read_number=data["read_number"] or 0, username=username)
        except InvalidFieldsError as error:
            # The lab names the capability that an error is about; all capabilities are in one field.
            sentences_by_field = {
                name if name in self.fields else "capabilities": sentences for name, sentences in error.errors.items()
            }
            self.add_errors(InvalidFieldsError(sentences_by_field))
            return None
