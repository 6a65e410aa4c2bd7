"""Everything that reads what a user, a file or a provider wrote, each with an input of a given size."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import benchmarks.ready  # noqa: F401
from toolbench.engine import formats
from toolbench.engine.arguments import read_arguments
from toolbench.engine.json_text import read_json
from toolbench.engine.partial_json import JsonExtent, read_partial
from toolbench.engine.repairs import ALL, repair
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.lint import lint_tools
from toolbench.engine.transforms.tags import cut_tagged_calls
from toolbench.engine.wires.sse import EventReader
from toolbench.engine.wires.streaming import StreamDecoder
from toolbench.evals.user_cases.documents import NotReadable, read_document
from toolbench.evals.user_cases.parse import Faults, case_of
from toolbench.lab.cases.drafts import Draft, DraftRefused, read_draft
from toolbench.lab.interchange.history.lines import HistoryRefused, read_lines
from toolbench.lab.interchange.inspect_ai.documents import read_log_document
from toolbench.lab.interchange.manifest import NotABundle, read_manifest
from toolbench.lab.interchange.row_json import packed, unpacked
from toolbench.lab.metrics.export_table import ExportTable
from toolbench.lab.traces.code_view import code_of
from toolbench.lab.traces.step_facts import column_json, column_text
from toolbench.providers.masking.secrets import Masker
from toolbench.providers.masking.streamed_text import LiveMasker
from toolbench.web.exports import WRITERS

KEY = "sk-benchmark-0123456789abcdef"
_REFUSALS = (NotReadable, Faults, DraftRefused, HistoryRefused, NotABundle)
_CALL = '{"name": "t0", "arguments": {}}'


@dataclass(frozen=True, slots=True)
class Reader:
    """Something that reads an input.

    Attributes:
        make: returns an input of about so many characters.
        take: reads it; a refusal is a result like any other.
        steps: lines and calls per character, at most.
    """

    make: Callable[[int], Any]
    take: Callable[[Any], object]
    steps: float = 3.0

    def read(self, given: Any) -> None:
        with suppress(*_REFUSALS):
            self.take(given)


def _keys(size: int) -> str:
    return ",".join(f'"key{number}":{number}' for number in range(size // 12))


def _block(size: int) -> str:
    return "".join(f"key{number}: 1\n" for number in range(size // 11))


def _unknown_calls(size: int) -> Any:
    tools, calls = ([{"name": f"{name}{number}"} for number in range(size // 60)] for name in "tx")
    return {"tools": tools, "messages": "hi", "expect": {"calls": calls}}


def _tools(size: int, tool: str) -> str:
    return "".join(f"- {tool.format(number)}\n" for number in range(size // 30))


def _extent(text: str) -> bool:
    extent = JsonExtent()
    for at in range(0, len(text), 7):
        extent.feed(text[at : at + 7])
    return extent.closed


def _events(body: bytes) -> int:
    reader = EventReader()
    read = sum(1 for at in range(0, len(body), 11) for _ in reader.feed(body[at : at + 11]))
    return read + sum(1 for _ in reader.close())


def _stream(delta: Callable[[int], Any]) -> Callable[[int], bytes]:
    """Bytes of an answer whose events each bring what `delta` gives for their number."""

    def made(size: int) -> bytes:
        choices = ([{"index": 0, "delta": delta(number)}] for number in range(size // 110))
        return b"".join(b"data: %b\n\n" % json.dumps({"choices": choice}).encode() for choice in choices)

    return made


def _call_delta(**known: Any) -> Any:
    return {"tool_calls": [{**known, "function": {"name": "f", "arguments": '{"a":1}'}}]}


def _streamed(body: bytes) -> None:
    decoder = StreamDecoder(cast(Any, lambda answer: answer))  # what follows is not measured
    for at in range(0, len(body), 100):
        decoder.feed(body[at : at + 100])
    decoder.close()


def _tool_set(size: int) -> list[ToolDefinition]:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    return [ToolDefinition(f"t{number}", "Does it.", schema) for number in range(size // 80)]


def _heard(text: str) -> None:
    """Mask a text that comes in events of 900 characters, for those who listen."""
    live = LiveMasker(Masker([KEY]))
    for at in range(0, len(text), 900):
        live.mask({"text": text[at : at + 900], "reasoning": ""})


def _masked(body: bytes) -> bytes:
    return Masker([KEY]).mask(body)


def _table(size: int) -> ExportTable:
    return ExportTable("t", (), ("a", "b"), tuple((f"=text {number}", number) for number in range(size // 12)))


def _manifest(size: int) -> bytes:
    members = {f"m{number}": {"sha256": "0" * 64, "bytes": 1} for number in range(size // 100)}
    return json.dumps(
        {"format": "toolbench-bundle", "version": 1, "made_at": "", "source": {}, "members": members}
        | {"left_out": [], "evidence": ""}
    ).encode()


def _log(size: int) -> bytes:
    samples = [{"id": number, "scores": {"m": {"value": "C"}}} for number in range(size // 45)]
    return json.dumps({"eval": {}, "samples": samples}).encode()


def _log_samples(raw: bytes) -> int:
    return sum(1 for _ in read_log_document(raw).samples())


READERS: Mapping[str, Reader] = {
    "JSON by hand": Reader(lambda size: f"{{{_keys(size)}}}", read_document),
    "JSON by hand, one key twice": Reader(lambda size: f'{{{_keys(size)},"key1":0}}', read_document, 5),
    "JSON by hand, objects in objects": Reader(lambda size: f"[{','.join(['{}'] * (size // 3))}]", read_document, 8),
    "YAML, a block": Reader(_block, read_document, 25),
    "YAML, one key twice": Reader(lambda size: f"{_block(size)}key1: 2", read_document, 16),
    "YAML, lists in lists": Reader(lambda size: "a: [" + ",".join(["[1]"] * (size // 4)) + "]", read_document, 70),
    "YAML, too deep": Reader(lambda size: "a: " + "[" * size, read_document),
    "YAML, half a character": Reader(lambda size: f'a: "\\ud83d"\n{_block(size)}', read_document, 170),
    "a case, tools with faults": Reader(
        lambda size: Draft(tools=_tools(size, "{{nme: t{}}}"), message="hi", expect=_CALL), read_draft, 20
    ),
    "a case, tools twice": Reader(
        lambda size: Draft(tools=_tools(size, "{{name: t, x: {}}}"), message="hi", expect=_CALL), read_draft, 30
    ),
    "a case, calls of unknown tools": Reader(_unknown_calls, case_of, 20),
    "JSON": Reader(lambda size: f"{{{_keys(size)}}}", read_json),
    "JSON that is being written": Reader(lambda size: f"{{{_keys(size)}", read_partial),
    "where JSON ends, fed in pieces": Reader(lambda size: f"{{{_keys(size)}", _extent, 6),
    "arguments": Reader(lambda size: f"```json\n{{{_keys(size)}}}\n```", lambda text: read_arguments(text, 1 << 24)),
    "repairs, single quotes and commas": Reader(
        lambda size: f"{{{_keys(size)},}}".replace('"', "'"), lambda text: repair(text, ALL), 75
    ),
    "repairs, open brackets": Reader(
        lambda size: '{"a":[' * (size // 6), lambda text: repair(text, ALL, cut=True), 170
    ),
    "repairs, objects in a row": Reader(lambda size: '{"a":1}' * (size // 7), lambda text: repair(text, ALL), 20),
    "repairs, quotes": Reader(lambda size: '"' * size, lambda text: repair(text, ALL), 130),
    "tagged calls": Reader(lambda size: "<tool_call>{}</tool_call>" * (size // 25), cut_tagged_calls, 16),
    "tags without an end": Reader(lambda size: "<tool_call>" * (size // 11), cut_tagged_calls, 5),
    "events, one long line": Reader(lambda size: b'data: {"a": "' + b"x" * size, _events, 3),
    "events, many": Reader(lambda size: b'data: {"a": 1}\n\n' * (size // 16), _events, 8),
    "a stream of text": Reader(_stream(lambda number: {"content": "word "}), _streamed, 5),
    "a stream of calls": Reader(_stream(lambda number: _call_delta(index=number, id=f"c{number}")), _streamed, 5),
    "a stream of calls without an index": Reader(_stream(lambda number: _call_delta(id=f"c{number}")), _streamed, 5),
    "a stream of one call's arguments": Reader(_stream(lambda number: _call_delta(index=0)), _streamed, 5),
    "tools to be linted": Reader(_tool_set, lint_tools, 9),
    "calls as text, hermes": Reader(lambda size: f"<tool_call>{_CALL}</tool_call>" * (size // 60), formats.parse, 8),
    "calls as text, markers without an end": Reader(lambda size: "<tool_call>" * (size // 11), formats.parse, 40),
    "calls as text, tokens at the end": Reader(lambda size: "a" + "</s>" * (size // 4), formats.parse, 40),
    "calls as text, closers at the end": Reader(lambda size: "a" + "</s></think>" * (size // 12), formats.parse, 40),
    "calls as text, brackets": Reader(lambda size: "[" * size, formats.parse, 20),
    "masking for listeners, JSON": Reader(lambda size: '\\"a\\": ' * (size // 7), _heard),
    "masking for listeners, escapes": Reader(lambda size: "%41" * (size // 3), _heard, 10),
    "masking for listeners, open escapes": Reader(lambda size: "&" * size, _heard),
    "masking, the key in parts": Reader(
        lambda size: b"".join(b'data: {"a": "%c"}\n\n' % byte for byte in (KEY * size)[: size // 14].encode()),
        Masker([KEY]).mask_body,
        20,
    ),
    "masking, escapes that no key needs": Reader(lambda size: b"\\u0000\\u00e4\\/" * (size // 14), _masked),
    "masking, escapes of the key's letters": Reader(lambda size: b"\\u0073\\u006b" * (size // 12), _masked),
    "bytes in base64": Reader(lambda size: b"\xff" * size, lambda raw: unpacked(packed(raw))),
    "a history": Reader(
        lambda size: b'{"model":"a","strategy":"t","called":true}\n' * (size // 43),
        lambda raw: read_lines(raw.splitlines()),
    ),
    "a log of Inspect AI": Reader(_log, _log_samples),
    "a manifest": Reader(_manifest, read_manifest),
    "a body as lines": Reader(lambda size: f"{{{_keys(size)}}}".encode(), code_of, 15),
    "text for a column": Reader(lambda size: "\0é" * (size // 2), column_text),
    "JSON for a column": Reader(lambda size: ["é"] * (size // 4), column_json, 5),
    **{f"a table as {kind}": Reader(_table, writer, 13) for kind, (writer, _) in WRITERS.items()},
}
