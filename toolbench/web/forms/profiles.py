"""Form of a sampling profile."""

import json
import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import QueryDict

from toolbench.lab.library.profiles import (
    MAX_PATTERN_CHARACTERS,
    OPTION_NAMES,
    PROFILE_FUNCTIONS,
    SAMPLING_OPTIONS,
    SamplingOption,
)
from toolbench.lab.library.values import MAX_TEXT_CHARACTERS, render_indented
from toolbench.lab.models import SamplingProfile
from toolbench.web.forms.json_object import JsonObjectField
from toolbench.web.forms.library import EntryForm

NOT_SENT = "not sent"
_FLAGS = {"true": True, "false": False}


class NumberField(forms.FloatField):
    """Form field for a number. Whole numbers of up to 9 digits stay integers, so that 1 is not sent as 1.0."""

    def to_python(self, value: Any) -> Any:
        """Return the number; None for an empty field."""
        number = super().to_python(value)
        return int(number) if number is not None and re.fullmatch(r"-?\d{1,9}", str(value).strip()) else number


def _build_field(option: SamplingOption) -> forms.Field:
    if option.kind == "flag":
        return forms.ChoiceField(
            choices=[("", NOT_SENT), ("true", "on"), ("false", "off")], required=False, label=option.name
        )
    if option.kind == "choice":
        choices = [("", NOT_SENT), *((choice, choice) for choice in option.choices)]
        return forms.ChoiceField(choices=choices, required=False, label=option.name)
    attributes = {"placeholder": NOT_SENT}
    if option.kind == "whole":
        return forms.IntegerField(
            min_value=int(option.minimum),
            max_value=int(option.maximum),
            required=False,
            label=option.name,
            widget=forms.NumberInput(attributes),
        )
    return NumberField(
        min_value=option.minimum,
        max_value=option.maximum,
        required=False,
        label=option.name,
        widget=forms.NumberInput(attributes | {"step": "any"}),
    )


class ProfileForm(EntryForm[SamplingProfile]):
    """Form of a sampling profile: a field for each usual option, others as JSON.

    An option whose field is empty is not sent to the model.
    """

    functions = PROFILE_FUNCTIONS

    more = JsonObjectField(
        label="Other options",
        required=False,
        max_length=MAX_TEXT_CHARACTERS,
        widget=forms.Textarea({"rows": 3, "spellcheck": "false", "placeholder": '{"stop": ["END"]}'}),
        help_text="A JSON object. Its members are sent unchanged.",
    )
    applies_to = forms.CharField(
        label="Applies to",
        max_length=MAX_PATTERN_CHARACTERS,
        initial="*",
        help_text="A pattern for names of models: * for all, z-ai/glm-* for some.",
    )
    tags = forms.CharField(label="Tags", required=False, max_length=400, help_text="Separated by commas.")

    def __init__(self, data: QueryDict | None = None, *, initial: Mapping[str, Any] | None = None) -> None:
        """Build the form with the fields of the usual options."""
        super().__init__(data, initial=dict(initial or {}))
        self.fields.update({option.name: _build_field(option) for option in SAMPLING_OPTIONS})

    @property
    def options(self) -> list[forms.BoundField]:
        """Return the fields of the usual options."""
        return [self[name] for name in OPTION_NAMES]

    @staticmethod
    def to_initial(content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the initial values of the fields.

        The field `more` has the options without a field, and those with a value that their field cannot show.
        """
        options = dict(content["options"])
        fitting_options = {
            option.name: options.pop(option.name)
            for option in SAMPLING_OPTIONS
            if option.name in options and _fits_field(option, options[option.name])
        }
        initial = {
            name: json.dumps(value) if isinstance(value, bool) else value for name, value in fitting_options.items()
        }
        more = render_indented(options) if options else ""
        return {**content, **initial, "more": more, "tags": ", ".join(content["tags"])}

    def clean_more(self) -> dict[str, Any]:
        """Return the other options.

        Raises:
            ValidationError: the object names an option that has a field.
        """
        options: dict[str, Any] = self.cleaned_data["more"]
        if field_names := sorted(set(OPTION_NAMES) & options.keys()):
            raise forms.ValidationError(f"Use the fields for {', '.join(field_names)}.")
        return options

    def build_content(self) -> dict[str, Any] | None:
        """Return the profile's content; None if the form is empty or has errors."""
        if not self.is_valid():
            return None
        data = self.cleaned_data
        options = {name: _FLAGS.get(data[name], data[name]) for name in OPTION_NAMES if data[name] not in (None, "")}
        tags = [tag.strip() for tag in data["tags"].split(",") if tag.strip()]
        return {"options": options | data["more"], "applies_to": data["applies_to"], "tags": list(dict.fromkeys(tags))}


def _fits_field(option: SamplingOption, value: Any) -> bool:
    if option.kind in ("flag", "choice"):
        return isinstance(value, bool) if option.kind == "flag" else value in option.choices
    number_types = int if option.kind == "whole" else (int, float)
    return isinstance(value, number_types) and not isinstance(value, bool)
