"""Template tag for parts of a page that are kept in memory while the data that they show have one version."""

from collections.abc import Hashable

from django import template
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from toolbench.lab.metrics.version_cache import VersionCache

register = template.Library()
_MAX_PARTS = 16  # a part of 60 rows has up to 600 kB
_parts: VersionCache[SafeString] = VersionCache(max_entries=_MAX_PARTS)


@register.simple_tag
def include_kept(name: str, version: Hashable, *key: Hashable, **context: object) -> SafeString:
    """Show a template that sees nothing but `context`.

    Args:
        name: the template.
        version: of the data that it shows; None keeps nothing.
        key: everything else that it depends on.
        context: the names that it uses.
    """
    return _parts.get(version, (name, *key), lambda: mark_safe(render_to_string(name, context)))
