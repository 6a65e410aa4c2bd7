"""The command `manage.py eval` with the options of most tests."""

from io import StringIO
from typing import Any

from django.core.management import call_command


def evaluate(**options: Any) -> str:
    """Run the command, and return its standard output; the progress bar goes to standard error."""
    out = StringIO()
    defaults = {
        "models": "all",
        "provider": "scripted",
        "scenarios": "happy_path,chat_only",
        "trials": "2",
        "yes": True,
    }
    call_command("eval", **(defaults | options), stdout=out)
    return out.getvalue()
