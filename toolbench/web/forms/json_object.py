"""Form field for a JSON object."""

import json
from typing import Any

from django import forms


class JsonObjectField(forms.CharField):
    """Form field for the text of a JSON object. A blank text stands for {}."""

    widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})

    def clean(self, value: Any) -> dict[str, Any]:
        """Return the parsed object.

        Raises:
            ValidationError: the text is not a JSON object; the message names the position of the error.
        """
        text = super().clean(value).strip()
        try:
            parsed = json.loads(text or "{}")
        except RecursionError as error:
            raise forms.ValidationError("This is not JSON: it is nested too deeply.") from error
        except json.JSONDecodeError as error:
            position = f"line {error.lineno}, column {error.colno}"
            raise forms.ValidationError(f"This is not JSON: {position}: {error.msg}.") from error
        except ValueError as error:
            raise forms.ValidationError(f"This is not JSON: {error}.") from error
        if not isinstance(parsed, dict):
            raise forms.ValidationError("This must be a JSON object, in braces.")
        return parsed
