"""Formats page: the calls that each text format reads in a pasted text."""

import html
import json

import pytest
from django.test import Client

from tests.factories import make_model
from tests.page_html import read_html
from tests.web.views.endpoints.test_probes import make_probe
from toolbench.lab.endpoints.format_table import get_text_format_rows

pytestmark = pytest.mark.django_db

HERMES = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
TOOLS = json.dumps([{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}])


def test_formats_page_shows_call_under_formats_that_read_it(owner_client: Client) -> None:
    text = read_html(owner_client.post("/formats/", {"text": HERMES, "tools": TOOLS}))
    auto, _, rest = text.partition("<code>hermes</code>")
    assert "<code>auto</code>" in auto
    assert "Oslo" in auto
    assert "Oslo" in rest
    assert "Formats that found no call" in rest
    assert text.count("Oslo") <= 6  # pasted, read by auto, and once for each reading that differs


def test_formats_page_reads_bare_json_only_as_call_of_known_tool(owner_client: Client) -> None:
    bare = '{"name": "get_weather", "arguments": {}}'
    known = read_html(owner_client.post("/formats/", {"text": bare, "tools": TOOLS}))
    unknown = read_html(owner_client.post("/formats/", {"text": bare}))
    assert "1 call" in known.partition("</section>")[0]
    assert "0 calls" in unknown.partition("</section>")[0]


def test_formats_page_shows_name_with_lone_surrogate(owner_client: Client) -> None:
    text = HERMES.replace("get_weather", r"get\ud800")
    shown = owner_client.post("/formats/", {"text": text})
    assert shown.status_code == 200
    assert shown.context["readings"].auto.calls[0].name == "get\ud800"
    assert read_html(shown).count(r"get\ud800") > 1  # pasted, and read


def test_formats_page_example_of_family_is_read_as_call(owner_client: Client) -> None:
    form = owner_client.get("/formats/?family=hermes").context["form"]
    shown = read_html(owner_client.post("/formats/", form.initial))
    assert form.initial["text"].startswith("<tool_call>")
    assert "1 call" in shown.partition("</section>")[0]
    for unknown in ("auto", "nobody", "\0"):
        assert not owner_client.get("/formats/", {"family": unknown}).context["form"].initial


def test_formats_page_groups_formats_with_equal_calls(owner_client: Client) -> None:
    readings = owner_client.post("/formats/", {"text": f"<think>so</think>Yes.{HERMES}", "tools": TOOLS}).context[
        "readings"
    ]
    reading_of_hermes = next(reading for reading in readings.others if "hermes" in reading.formats)
    assert "qwen3_coder" in reading_of_hermes.formats, "the same call, read by its own tag"
    remaining_texts = {name: rest.text for rest in reading_of_hermes.remaining_texts for name in rest.formats}
    assert remaining_texts["hermes"] == "Yes."
    assert "<tool_call>" in remaining_texts["json"]
    assert len([reading for reading in readings.others if reading.calls == reading_of_hermes.calls]) == 1


@pytest.mark.parametrize("tools", ["{", "{}", "[1]", "[" * 100_000, '[{"function": {"name": 1}}]'])
def test_formats_page_explains_invalid_tools_and_keeps_text(owner_client: Client, tools: str) -> None:
    response = owner_client.post("/formats/", {"text": "kept", "tools": tools})
    assert response.status_code == 200
    assert "kept" in read_html(response)
    assert "OpenAI tools array" in read_html(response)


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "[" * 2_000, "\0", "<tool_call>" * 700])
def test_formats_page_escapes_hostile_text(owner_client: Client, text: str) -> None:
    response = owner_client.post("/formats/", {"text": text, "tools": TOOLS})
    assert response.status_code == 200
    assert "<script>alert" not in read_html(response)


def test_formats_page_shows_incomplete_call(owner_client: Client) -> None:
    text = read_html(owner_client.post("/formats/", {"text": HERMES.partition("lo")[0], "tools": TOOLS}))
    auto = text.partition("</section>")[0]
    assert "0 calls" in auto
    assert "call_cut" in auto
    assert "Incomplete call, not executed" in auto
    assert '"city": "Os"' in html.unescape(auto)


def test_formats_page_table_shows_methods_of_each_format(owner_client: Client) -> None:
    make_probe(make_model("vendor/tagged"), learned={"text_format": "hermes"})

    shown = read_html(owner_client.get("/formats/"))

    assert "<code>hermes</code>" in shown
    methods = {row.name: (row.is_native, row.has_template, row.has_grammar) for row in get_text_format_rows()}
    assert methods["hermes"] == (True, True, True)
    assert methods["generic_xml"] == (False, False, True)
    assert methods["qwen3_coder"] == (True, True, False)
    assert shown.count("yes, also in its text format") == sum(grammar for _, _, grammar in methods.values())
    assert "vendor/tagged" in shown
    assert "mistral_v13" in shown


def test_families_address_redirects_to_formats(owner_client: Client) -> None:
    assert owner_client.get("/families/").headers["Location"] == "/formats/#formats"
