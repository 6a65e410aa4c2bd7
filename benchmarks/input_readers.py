"""Readers of input from users, files and providers, each with an input of a given size."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import benchmarks.django_setup  # noqa: F401
from toolbench.engine import formats
from toolbench.engine.arguments import read_arguments
from toolbench.engine.errors import MalformedAnswerError
from toolbench.engine.events import Delta
from toolbench.engine.partial_json import JsonEndFinder, read_partial
from toolbench.engine.repairs import REPAIR_NAMES, repair_arguments
from toolbench.engine.strict_json import read_json
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.lint import lint_tools
from toolbench.engine.transforms.tool_call_tags import extract_tagged_calls
from toolbench.engine.wire_formats.registry import get_wire_format
from toolbench.engine.wire_formats.sse import EventReader
from toolbench.engine.wire_formats.stream_reader import StreamDecoder
from toolbench.evals.user_cases.documents import DocumentError, read_document
from toolbench.evals.user_cases.parse import InvalidCaseError, parse_case
from toolbench.lab.cases.drafts import CaseDraft, DraftError, parse_draft
from toolbench.lab.interchange.history.lines import HistoryImportError, parse_lines
from toolbench.lab.interchange.inspect_ai.documents import parse_log_document
from toolbench.lab.interchange.manifest import ManifestError, parse_manifest
from toolbench.lab.interchange.row_json import decode_bytes, encode_bytes
from toolbench.lab.metrics.export_table import ExportTable
from toolbench.lab.traces.code_view import render_body
from toolbench.lab.traces.step_facts import to_column_json, to_column_text
from toolbench.providers.masking.secrets import Masker
from toolbench.providers.masking.streamed_text import StreamMasker
from toolbench.web.downloads import WRITERS

SECRET_KEY = "sk-benchmark-0123456789abcdef"
_REFUSAL_ERRORS = (DocumentError, InvalidCaseError, DraftError, HistoryImportError, ManifestError)
_CALL = '{"name": "t0", "arguments": {}}'


@dataclass(frozen=True, slots=True)
class InputReader:
    """Reader and its input.

    Attributes:
        build_input: returns an input of about so many characters.
        read_input: reads it; it may refuse it with one of the errors for refused inputs.
        steps: largest number of executed lines and calls per character.
    """

    build_input: Callable[[int], Any]
    read_input: Callable[[Any], object]
    steps: float = 3.0

    def read(self, text: Any) -> None:
        """Read an input, and ignore a refusal."""
        with suppress(*_REFUSAL_ERRORS):
            self.read_input(text)


def _build_keys(size: int) -> str:
    return ",".join(f'"key{number}":{number}' for number in range(size // 12))


def _build_block(size: int) -> str:
    return "".join(f"key{number}: 1\n" for number in range(size // 11))


def _build_unknown_calls(size: int) -> Any:
    tools, calls = ([{"name": f"{name}{number}"} for number in range(size // 60)] for name in "tx")
    return {"tools": tools, "messages": "hi", "expect": {"calls": calls}}


def _build_tools(size: int, tool: str) -> str:
    return "".join(f"- {tool.format(number)}\n" for number in range(size // 30))


def _find_extent(text: str) -> bool:
    extent = JsonEndFinder()
    for at in range(0, len(text), 7):
        extent.feed(text[at : at + 7])
    return extent.is_closed


def _count_events(body: bytes) -> int:
    reader = EventReader()
    read = sum(1 for at in range(0, len(body), 11) for _ in reader.feed(body[at : at + 11]))
    return read + sum(1 for _ in reader.close())


def _build_stream(delta: Callable[[int], Any]) -> Callable[[int], bytes]:
    """Return a function that builds a stream; `delta` gives the delta of each event by its number."""

    def build(size: int) -> bytes:
        choices = ([{"index": 0, "delta": delta(number)}] for number in range(size // 110))
        return b"".join(b"data: %b\n\n" % json.dumps({"choices": choice}).encode() for choice in choices)

    return build


def _build_call_delta(**fields: Any) -> Any:
    return {"tool_calls": [{**fields, "function": {"name": "f", "arguments": '{"a":1}'}}]}


def _read_stream(body: bytes) -> None:
    decoder = StreamDecoder(cast(Any, lambda answer: answer))  # the parsing of the answer is not measured
    for at in range(0, len(body), 100):
        decoder.feed(body[at : at + 100])
    decoder.close()


def _build_call_conversation(size: int) -> Any:
    """Build the body of a chat request with many calls in one answer, and their results from the last to the first."""
    ids = [f"call_{number}" for number in range(size // 60)]
    calls = [{"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for call_id in ids]
    results = [{"role": "tool", "tool_call_id": call_id, "content": "{}"} for call_id in reversed(ids)]
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "", "tool_calls": calls}, *results]
    return {"model": "m", "messages": messages}


def _build_events(build_event: Callable[[int], Any]) -> Callable[[int], bytes]:
    """Return a function that builds a stream; `build_event` gives the data of each event by its number."""
    return lambda size: b"".join(
        b"data: %b\n\n" % json.dumps(build_event(number)).encode() for number in range(size // 110)
    )


def _read_events(wire: str) -> Callable[[bytes], object]:
    def read(body: bytes) -> None:
        decoder = get_wire_format(wire).build_decoder(cast(Any, lambda answer: answer), _ignore_delta, is_streamed=True)
        decoder.feed(body)
        with suppress(MalformedAnswerError):
            decoder.close()

    return read


def _ignore_delta(delta: Delta) -> None:
    """Ignore a part of an answer."""


def _build_tool_set(size: int) -> list[ToolDefinition]:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    return [ToolDefinition(f"t{number}", "Does it.", schema) for number in range(size // 80)]


def _mask_stream(text: str) -> None:
    """Mask a text in events of 900 characters, as they are shown while an answer arrives."""
    live = StreamMasker(Masker([SECRET_KEY]))
    for at in range(0, len(text), 900):
        live.mask({"text": text[at : at + 900], "reasoning": ""})


def _mask_body(body: bytes) -> bytes:
    return Masker([SECRET_KEY]).mask(body)


def _build_table(size: int) -> ExportTable:
    return ExportTable("t", (), ("a", "b"), tuple((f"=text {number}", number) for number in range(size // 12)))


def _build_manifest(size: int) -> bytes:
    members = {f"m{number}": {"sha256": "0" * 64, "bytes": 1} for number in range(size // 100)}
    return json.dumps(
        {"format": "toolbench-bundle", "version": 1, "made_at": "", "source": {}, "members": members}
        | {"left_out": [], "evidence": ""}
    ).encode()


def _build_log(size: int) -> bytes:
    samples = [{"id": number, "scores": {"m": {"value": "C"}}} for number in range(size // 45)]
    return json.dumps({"eval": {}, "samples": samples}).encode()


def _count_log_samples(raw: bytes) -> int:
    return sum(1 for _ in parse_log_document(raw).iter_samples())


READER_BY_NAME: Mapping[str, InputReader] = {
    "JSON by hand": InputReader(lambda size: f"{{{_build_keys(size)}}}", read_document),
    "JSON by hand, one key twice": InputReader(lambda size: f'{{{_build_keys(size)},"key1":0}}', read_document, 5),
    "JSON by hand, objects in objects": InputReader(
        lambda size: f"[{','.join(['{}'] * (size // 3))}]", read_document, 8
    ),
    "YAML, a block": InputReader(_build_block, read_document, 25),
    "YAML, one key twice": InputReader(lambda size: f"{_build_block(size)}key1: 2", read_document, 16),
    "YAML, lists in lists": InputReader(lambda size: "a: [" + ",".join(["[1]"] * (size // 4)) + "]", read_document, 70),
    "YAML, too deep": InputReader(lambda size: "a: " + "[" * size, read_document),
    "YAML, a lone surrogate": InputReader(lambda size: f'a: "\\ud83d"\n{_build_block(size)}', read_document, 170),
    "a case, tools with faults": InputReader(
        lambda size: CaseDraft(tools=_build_tools(size, "{{nme: t{}}}"), message="hi", expect=_CALL), parse_draft, 20
    ),
    "a case, tools of one name": InputReader(
        lambda size: CaseDraft(tools=_build_tools(size, "{{name: t, x: {}}}"), message="hi", expect=_CALL),
        parse_draft,
        30,
    ),
    "a case, calls of unknown tools": InputReader(_build_unknown_calls, parse_case, 20),
    "JSON": InputReader(lambda size: f"{{{_build_keys(size)}}}", read_json),
    "JSON, incomplete": InputReader(lambda size: f"{{{_build_keys(size)}", read_partial),
    "end of JSON, fed in chunks": InputReader(lambda size: f"{{{_build_keys(size)}", _find_extent, 6),
    "arguments": InputReader(
        lambda size: f"```json\n{{{_build_keys(size)}}}\n```", lambda text: read_arguments(text, 1 << 24)
    ),
    "repairs, single quotes and commas": InputReader(
        lambda size: f"{{{_build_keys(size)},}}".replace('"', "'"),
        lambda text: repair_arguments(text, REPAIR_NAMES),
        75,
    ),
    "repairs, open brackets": InputReader(
        lambda size: '{"a":[' * (size // 6), lambda text: repair_arguments(text, REPAIR_NAMES, is_truncated=True), 170
    ),
    "repairs, objects in a row": InputReader(
        lambda size: '{"a":1}' * (size // 7), lambda text: repair_arguments(text, REPAIR_NAMES), 23
    ),
    "repairs, quotes": InputReader(lambda size: '"' * size, lambda text: repair_arguments(text, REPAIR_NAMES), 130),
    "tagged calls": InputReader(lambda size: "<tool_call>{}</tool_call>" * (size // 25), extract_tagged_calls, 16),
    "tags without an end": InputReader(lambda size: "<tool_call>" * (size // 11), extract_tagged_calls, 5),
    "events, one long line": InputReader(lambda size: b'data: {"a": "' + b"x" * size, _count_events, 3),
    "events, many": InputReader(lambda size: b'data: {"a": 1}\n\n' * (size // 16), _count_events, 8),
    "a stream of text": InputReader(_build_stream(lambda number: {"content": "word "}), _read_stream, 5),
    "a stream of calls": InputReader(
        _build_stream(lambda number: _build_call_delta(index=number, id=f"c{number}")), _read_stream, 5
    ),
    "a stream of calls without an index": InputReader(
        _build_stream(lambda number: _build_call_delta(id=f"c{number}")), _read_stream, 5
    ),
    "a stream of one call's arguments": InputReader(
        _build_stream(lambda number: _build_call_delta(index=0)), _read_stream, 5
    ),
    "a stream of Messages blocks": InputReader(
        _build_events(
            lambda number: {"type": "content_block_start", "index": number, "content_block": {"type": "tool_use"}}
        ),
        _read_events("anthropic"),
        5,
    ),
    "a stream of Responses items": InputReader(
        _build_events(
            lambda number: {
                "type": "response.output_item.added",
                "output_index": number,
                "item": {"type": "function_call", "id": f"i{number}"},
            }
        ),
        _read_events("responses"),
        5,
    ),
    "calls and results for Messages": InputReader(_build_call_conversation, get_wire_format("anthropic").encode, 5),
    "calls and results for Responses": InputReader(_build_call_conversation, get_wire_format("responses").encode, 5),
    "tools to be linted": InputReader(_build_tool_set, lint_tools, 9),
    "calls as text, hermes": InputReader(
        lambda size: f"<tool_call>{_CALL}</tool_call>" * (size // 60), formats.parse, 8
    ),
    "calls as text, markers without an end": InputReader(lambda size: "<tool_call>" * (size // 11), formats.parse, 40),
    "calls as text, tokens at the end": InputReader(lambda size: "a" + "</s>" * (size // 4), formats.parse, 40),
    "calls as text, end markers at the end": InputReader(
        lambda size: "a" + "</s></think>" * (size // 12), formats.parse, 40
    ),
    "calls as text, brackets": InputReader(lambda size: "[" * size, formats.parse, 20),
    "masking of streamed texts, JSON": InputReader(lambda size: '\\"a\\": ' * (size // 7), _mask_stream),
    "masking of streamed texts, escapes": InputReader(lambda size: "%41" * (size // 3), _mask_stream, 10),
    "masking of streamed texts, open escapes": InputReader(lambda size: "&" * size, _mask_stream),
    "masking, the key in parts": InputReader(
        lambda size: b"".join(b'data: {"a": "%c"}\n\n' % byte for byte in (SECRET_KEY * size)[: size // 14].encode()),
        Masker([SECRET_KEY]).mask_body,
        20,
    ),
    "masking, escapes that no key needs": InputReader(lambda size: b"\\u0000\\u00e4\\/" * (size // 14), _mask_body),
    "masking, escapes of the key's letters": InputReader(lambda size: b"\\u0073\\u006b" * (size // 12), _mask_body),
    "bytes in base64": InputReader(lambda size: b"\xff" * size, lambda raw: decode_bytes(encode_bytes(raw))),
    "a history": InputReader(
        lambda size: b'{"model":"a","strategy":"t","called":true}\n' * (size // 43),
        lambda raw: parse_lines(raw.splitlines()),
    ),
    "a log of Inspect AI": InputReader(_build_log, _count_log_samples, 5),
    "a manifest": InputReader(_build_manifest, parse_manifest),
    "a body as lines": InputReader(lambda size: f"{{{_build_keys(size)}}}".encode(), render_body, 15),
    "text for a column": InputReader(lambda size: "\0é" * (size // 2), to_column_text),
    "JSON for a column": InputReader(lambda size: ["é"] * (size // 4), to_column_json, 5),
    **{f"a table as {kind}": InputReader(_build_table, writer, 13) for kind, (writer, _) in WRITERS.items()},
}
