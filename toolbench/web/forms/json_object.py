"""Form field for a JSON object."""

from typing import Any

from django import forms

from toolbench.lab.library.values import parse_value


class JsonObjectField(forms.CharField):
    """Form field for the text of a JSON object. A blank text stands for {}."""

    widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})

    def clean(self, value: Any) -> dict[str, Any]:
        """Return the parsed object.

        Raises:
            ValidationError: the text is not a JSON object, is too long, or cannot be stored. For invalid JSON, the
                message gives the position of the error.
        """
        text = super().clean(value).strip()
        try:
            parsed = parse_value(text or "{}")
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error
        if not isinstance(parsed, dict):
            raise forms.ValidationError("This must be a JSON object, in braces.")
        return parsed
