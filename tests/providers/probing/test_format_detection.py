from typing import Any

import pytest

from toolbench.engine import formats
from toolbench.providers.probing.format_detection import detect_format_without_tools


@pytest.mark.parametrize("text", ["`{" * 2000, "f `{" * 1000, "`\n" * 2000, "f " + "\n`" * 1999])
def test_detect_format_parses_a_text_once_for_formats_that_agree(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed_formats: list[str] = []
    parse = formats.parse

    def count(*args: Any, **options: Any) -> formats.ParsedText:
        parsed_formats.append(options["format"])
        return parse(*args, **options)

    monkeypatch.setattr(formats, "parse", count)
    assert detect_format_without_tools(text) == ""
    assert 1 <= len(parsed_formats) <= 12


@pytest.mark.parametrize(
    "text",
    ['{"name": "f", "arguments": {}}', "[f(a=1)]", "<tool_call>f</tool_call>", "Use `f`.", "[TOOL_CALLS]f[ARGS]{}"],
)
def test_distinct_formats_include_every_result(text: str) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    names = [name for name in formats.list_format_names() if name != formats.AUTO]
    distinct_names = formats.select_distinct_formats(text, names, tools)
    results = [formats.parse(text, format=name, tools=tools) for name in distinct_names]
    assert all(formats.parse(text, format=name, tools=tools) in results for name in names)
    assert len(distinct_names) < len(names) / 2
