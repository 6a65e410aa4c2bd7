"""Template tag that caches a rendered part of a page in memory until the version of its data changes."""

from collections.abc import Hashable

from django import template
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from toolbench.lab.metrics.version_cache import VersionCache

register = template.Library()
_MAX_PARTS = 16  # since a part of 60 rows has up to 600 kB
_parts: VersionCache[SafeString] = VersionCache(max_entries=_MAX_PARTS)


@register.simple_tag
def include_cached(name: str, version: Hashable, *key: Hashable, **context: object) -> SafeString:
    """Render a template without the context of the page, or return its cached text.

    Args:
        name: name of the template.
        version: version of the data that the template shows; None to render without caching.
        *key: everything else that the text depends on.
        **context: the only variables that the template sees. They are not part of the key.
    """
    return _parts.get(version, (name, *key), lambda: mark_safe(render_to_string(name, context)))
