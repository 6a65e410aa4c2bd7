"""Strict lookup of template variables: a page with an unknown name fails."""

from contextlib import suppress

import pytest
from django.template import Context, Engine

from tests.strict_templates import UNKNOWN_NAMES, UnknownTemplateNameError
from toolbench.lab.metrics.definitions import METRICS

CONSTRUCTS = (
    "{{ %s }}",
    "{{ %s|default:'x' }}",
    "{%% if %s %%}x{%% endif %%}",
    "{%% if not %s %%}x{%% endif %%}",
    "{%% for item in %s %%}x{%% endfor %%}",
    "{%% with value=%s %%}x{%% endwith %%}",
    "{%% firstof %s %%}",
)
RATE = next(metric for metric in METRICS.values() if metric.rate is not None)


@pytest.mark.parametrize("construct", CONSTRUCTS)
@pytest.mark.parametrize("name", ["nothing", "metric.nothing", "metric.rate", "metric.label.nothing"])
def test_resolve_strict_with_unknown_name_fails(construct: str, name: str) -> None:
    """`metric.rate` is a callable that once made a branch of the matrix page unreachable."""
    template = Engine().from_string(construct % name)

    with suppress(UnknownTemplateNameError):
        template.render(Context({"metric": RATE}))

    assert len(UNKNOWN_NAMES) == 1
    UNKNOWN_NAMES.clear()


@pytest.mark.parametrize(
    ("name", "text"),
    [("metric.label", "x"), ("absent.nothing", ""), ("stored.nothing", ""), ("stored.items", ""), ("short.3", "")],
)
def test_resolve_strict_with_known_name_renders(name: str, text: str) -> None:
    """A known name may have no value: None, a key that stored JSON lacks, an index after the end of a list."""
    template = Engine().from_string(CONSTRUCTS[2] % name)

    assert template.render(Context({"metric": RATE, "absent": None, "stored": {}, "short": [1]})) == text
