"""Labels of the parameters of pages of results, and the message about parameters that a page ignores."""

from collections.abc import Iterable

from django import template

from toolbench.lab.results.filter_labels import find_filter_label

register = template.Library()
register.filter("filter_label", find_filter_label)


@register.inclusion_tag("_ignored_filters.html")
def ignored_filters(names: Iterable[str]) -> dict[str, object]:
    """Show which filters are not applied, or nothing if there are none.

    Args:
        names: names of parameters, and terms of the query bar, which are shown as they are.
    """
    return {"labels": [find_filter_label(name) for name in names]}
