"""Counters: each is declared once and used."""

import re
from pathlib import Path

import toolbench
from toolbench.lab.metrics.tally import Tally
from toolbench.lab.models import Cell, Trial
from toolbench.lab.models.counters import COUNTERS, TRIAL_COUNTERS, build_count_expressions

READ_IN_THE_DATABASE_ONLY = {"behaviour_asked", "rightly_silent"}  # denominators that no page shows yet
PRODUCT = Path(toolbench.__path__[0])


def test_counters_have_column_of_their_class_and_expression() -> None:
    columns = {field.name: type(field) for field in Cell._meta.concrete_fields}
    assert {name: columns[name] for name in COUNTERS} == {name: spec.column for name, spec in COUNTERS.items()}
    expressions = build_count_expressions(counts_trials=True) | build_count_expressions(counts_trials=False)
    assert set(expressions) == set(COUNTERS)
    assert set(TRIAL_COUNTERS) <= {field.name for field in Trial._meta.concrete_fields}


def test_counters_are_zero_in_empty_tally() -> None:
    assert [name for name in COUNTERS if getattr(Tally(), name) != 0] == []


def test_counters_are_explained_and_used_in_product() -> None:
    assert [name for name, spec in COUNTERS.items() if not spec.help] == []
    files = [path for path in PRODUCT.rglob("*.py") if path.name != "counters.py" and "migrations" not in path.parts]
    files += (PRODUCT.parent / "templates").rglob("*.html")
    words = set(re.findall(r"\w+", "".join(path.read_text("utf-8") for path in files)))
    assert {name for name in COUNTERS if name not in words} <= READ_IN_THE_DATABASE_ONLY
