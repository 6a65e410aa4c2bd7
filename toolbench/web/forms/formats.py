"""Form of the format viewer: a text, and optional tools."""

import json
from typing import Any, Self

from django import forms
from django.http import QueryDict

from toolbench.lab.endpoints.format_viewer import EXAMPLE_TOOLS, MAX_TEXT_CHARS, find_example

TOOLS_HINT = 'An OpenAI tools array: [{"type": "function", "function": {"name": "get_weather"}}]'


class FormatForm(forms.Form):
    """Form of the format viewer."""

    text = forms.CharField(
        max_length=MAX_TEXT_CHARS,
        strip=False,
        label="Output of the model",
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
    )
    tools = forms.CharField(
        required=False,
        label="Tools",
        help_text=f"{TOOLS_HINT}. Calls in plain JSON or Python are read only if they name one of these tools.",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )

    @classmethod
    def from_request(cls, data: QueryDict | None, *, family: str) -> Self:
        """Return the form, with the example of the model family, if it has one, as initial text and tools."""
        example = find_example(family)
        if example is None:
            return cls(data)
        return cls(data, initial={"text": example, "tools": json.dumps(EXAMPLE_TOOLS, indent=2)})

    def clean_tools(self) -> list[dict[str, Any]]:
        """Parse the tools; return an empty list for a blank text.

        Raises:
            ValidationError: the text is not a JSON list of tools.
        """
        text = self.cleaned_data["tools"].strip()
        try:
            tools = json.loads(text or "[]")
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(f"This is not JSON. {TOOLS_HINT}") from error
        if not isinstance(tools, list) or not all(_is_tool(tool) for tool in tools):
            raise forms.ValidationError(f"This is not a list of tools. {TOOLS_HINT}")
        return tools


def _is_tool(tool: object) -> bool:
    function = tool.get("function") if isinstance(tool, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str)
