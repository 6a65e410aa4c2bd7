"""Template tag for the breadcrumb above the heading of a page."""

from django import template
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_block_tag
def breadcrumb(content: str) -> SafeString:
    """Show the path to a page as links.

    Args:
        content: the block's list items: links to the pages above, then this page, marked with `aria-current="page"`.
    """
    return render_to_string("_breadcrumb.html", {"items": content})
