"""Template tag for the breadcrumb."""

from django.template import Context, Template

from tests.page_html import collapse_html


def test_breadcrumb_shows_items_in_a_named_list_and_escapes_values() -> None:
    template = Template("{% load breadcrumbs %}{% breadcrumb %}Runs, {{ name }}{% endbreadcrumb %}")

    shown = collapse_html(template.render(Context({"name": "<b>7</b>"})))

    assert shown.startswith('<nav class="crumbs" aria-label="Breadcrumb">')
    assert "Runs, &lt;b&gt;7&lt;/b&gt;" in shown
