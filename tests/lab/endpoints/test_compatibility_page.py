from datetime import UTC, datetime

import pytest

from tests.factories import make_model, make_provider
from tests.lab.endpoints.test_capabilities import make_probe
from toolbench.engine.capabilities.record import DOCS
from toolbench.lab.endpoints.compatibility_page import CAPABILITY_COLUMNS, get_provider_tables


def test_capability_columns_cover_every_capability() -> None:
    assert {name for name, _ in CAPABILITY_COLUMNS} == set(DOCS)


@pytest.mark.django_db
def test_get_provider_tables_probed_value_overrides_declared() -> None:
    model = make_model("gpt", provider=make_provider("OpenAI", template="openai"))
    at = datetime.now(UTC)
    make_probe(
        model, finished_at=at, learned={"max_tools": 100, "schema_dialect": ["oneOf"], "prompt_endpoint": "llama"}
    )

    (table,) = get_provider_tables()
    cells = dict(zip(table.titles, table.rows[0].cells, strict=True))

    shown = [
        (cells[title].value, cells[title].source)
        for title in ("Maximum tools", "Refused schema keywords", "Prompt endpoint")
    ]
    assert shown == [("100", "probed"), ("oneOf", "probed"), ("llama", "probed")]
    assert (cells["Maximum tools"].at, cells["Tool name pattern"].source) == (at, "declared")
