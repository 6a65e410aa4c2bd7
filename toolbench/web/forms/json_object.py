"""A form's field for a JSON object written by hand."""

import json
from typing import Any

from django import forms


class JsonObjectField(forms.CharField):
    """A JSON object as text; blank is {}. What is wrong is said in one sentence, with its place."""

    widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})

    def clean(self, value: Any) -> dict[str, Any]:
        text = super().clean(value).strip()
        try:
            found = json.loads(text or "{}")
        except RecursionError as error:
            raise forms.ValidationError("This is not JSON: it is nested too deeply.") from error
        except json.JSONDecodeError as error:
            place = f"line {error.lineno}, column {error.colno}"
            raise forms.ValidationError(f"This is not JSON: {place}: {error.msg}.") from error
        except ValueError as error:
            raise forms.ValidationError(f"This is not JSON: {error}.") from error
        if not isinstance(found, dict):
            raise forms.ValidationError("This must be a JSON object, in braces.")
        return found
