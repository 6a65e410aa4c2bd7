"""Template tag for forms that launch runs."""

from uuid import uuid4

from django import template

register = template.Library()


@register.simple_tag
def new_launch_key() -> str:
    """Return a new idempotency key, with which a form launches one run however often the form is sent.

    The form sends the key as field `key`, or in the URL of its button (`toolbench/web/launch_keys.py`).
    """
    return str(uuid4())
