"""The format viewer's form: a text, and tools if there are any."""

import json
from typing import Any

from django import forms

from toolbench.lab.format_page import MOST_TEXT

TOOLS_HINT = 'An OpenAI tools array: [{"type": "function", "function": {"name": "get_weather"}}]'


class FormatForm(forms.Form):
    text = forms.CharField(
        max_length=MOST_TEXT,
        strip=False,
        label="What the model wrote",
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
    )
    tools = forms.CharField(
        required=False, label="Tools", widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})
    )

    def clean_tools(self) -> list[dict[str, Any]]:
        written = self.cleaned_data["tools"].strip()
        try:
            tools = json.loads(written or "[]")
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(f"This is not JSON. {TOOLS_HINT}") from error
        if not isinstance(tools, list) or not all(_is_tool(tool) for tool in tools):
            raise forms.ValidationError(f"{TOOLS_HINT} is expected here.")
        return tools


def _is_tool(tool: object) -> bool:
    function = tool.get("function") if isinstance(tool, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str)
