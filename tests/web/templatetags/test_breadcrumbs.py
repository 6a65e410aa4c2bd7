"""Template tag for the breadcrumb."""

from django.template import Context, Template

from tests.page_html import collapse_html


def test_breadcrumb_shows_items_in_a_named_list_and_escapes_values() -> None:
    items = '<li><a href="/runs/">Runs</a></li><li>{{ name }}</li>'
    template = Template("{% load breadcrumbs %}{% breadcrumb %}" + items + "{% endbreadcrumb %}")

    shown = collapse_html(template.render(Context({"name": "<b>7</b>"})))

    assert shown == (
        '<nav class="crumbs" aria-label="Breadcrumb"><ol><li><a href="/runs/">Runs</a></li>'
        "<li>&lt;b&gt;7&lt;/b&gt;</li></ol></nav>"
    )
