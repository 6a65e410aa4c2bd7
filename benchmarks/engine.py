"""CPU of one tool call in the engine, by part: schemas, grammars, masks, reading; and memory.

`python -m benchmarks.engine --runs 200 --rounds 5` prints microseconds of this process's CPU: medians over rounds, with
minimum and maximum in brackets. Ratios are to json.loads with jsonschema-rs on the same bytes, or to llguidance alone.
"""

import argparse
import gc
import json
import os
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count as count_from
from pathlib import Path

import jsonschema_rs
from llguidance import LLMatcher

from benchmarks.trial_answers import build_calling_answer, build_text_answer
from toolbench.engine.constraints.compiling import CACHE_SIZE, ConstraintOptions, compile_constraint
from toolbench.engine.constraints.mask import Mask, Vocabulary
from toolbench.engine.constraints.schema_support import CONSTRAINTS
from toolbench.engine.events import Ask
from toolbench.engine.loop.dispatch import dispatch
from toolbench.engine.loop.turn import build_ask
from toolbench.engine.loop.turn_setup import TurnSetup, prepare_turns
from toolbench.engine.policy.settings import Policy
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.tools.validation import check_schema
from toolbench.engine.types import JsonObject
from toolbench.providers.llama.vocabulary import read_vocabulary
from toolbench.providers.llama.weights import find_weights
from toolbench.providers.masking.secrets import build_masker

TOOL_COUNT = 10
PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 80},
        "kind": {"enum": ["note", "task", "event"]},
        "priority": {"type": "integer", "minimum": 1, "maximum": 5},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 20},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "done": {"type": "boolean"}},
                "required": ["text"],
            },
        },
    },
    "required": ["title", "lines"],
}
ARGUMENTS: JsonObject = {
    "title": "Things to do before the journey",
    "kind": "task",
    "tags": ["journey", "packing", "home"],
    "lines": [
        {"text": f"Line {place}: pack what is needed for the day, and not more.", "done": False} for place in range(22)
    ],
}
ANSWER_BY_METHOD = {
    "native": build_calling_answer(("tool_0", ARGUMENTS)),
    "text_json": build_text_answer(f"```json\n{json.dumps({'name': 'tool_0', 'arguments': ARGUMENTS})}\n```"),
    "constrained": build_text_answer(json.dumps({"name": "tool_0", "arguments": ARGUMENTS})),
}
SECRET_KEY = "sk-or-v1-" + "0123456789abcdef" * 4  # no real key
STREAM_BODY = b"".join(
    b"data: %s\n\n"
    % json.dumps({"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": f" {at}"}}]}).encode()
    for at in range(30)
)
ANSWER_TEXT = json.dumps({"name": "tool_0", "arguments": ARGUMENTS}, separators=(",", ":"))
Work = Callable[[], object]
_tool_set_numbers = count_from()


@dataclass(frozen=True, slots=True)
class MeasuredWork:
    """Work whose CPU time is measured.

    Attributes:
        over: name of the work to which the ratio is printed; "" for none.
        share: number of equal parts in one run; the time of one part is printed.
    """

    name: str
    work: Work
    over: str = ""
    share: int = 1


def build_definitions() -> tuple[ToolDefinition, ...]:
    """Return ten tools with the same parameters."""
    return tuple(ToolDefinition(f"tool_{place}", "Writes something down.", PARAMETERS) for place in range(TOOL_COUNT))


def build_unseen_tools() -> list[JsonObject]:
    """Return the tools with a description that no cache has seen."""
    description = f"Writes something down, {next(_tool_set_numbers)}."
    return [replace(tool, description=description).to_openai() for tool in build_definitions()]


def build_tools_without_common_keys() -> list[JsonObject]:
    """Return tools that no cache has seen and that have no key in common."""
    return [_rename_keys(tool, str(place)) for place, tool in enumerate(build_unseen_tools())]


def _rename_keys(tool: JsonObject, suffix: str) -> JsonObject:
    written = json.dumps(tool)
    for key in ("title", "kind", "priority", "tags", "lines", "text", "done"):
        written = written.replace(f'"{key}"', f'"{key}_{suffix}"')
    renamed: JsonObject = json.loads(written)
    return renamed


def iter_reading_work() -> Iterator[MeasuredWork]:
    """Yield the reading of a 2 kB answer of each method, from its bytes to a validated call."""
    validator = jsonschema_rs.validator_for(PARAMETERS)

    def plain() -> object:
        message = json.loads(ANSWER_BY_METHOD["native"])["choices"][0]["message"]
        return validator.is_valid(json.loads(message["tool_calls"][0]["function"]["arguments"]))

    yield MeasuredWork("json.loads + jsonschema-rs", plain)
    for method, body in ANSWER_BY_METHOD.items():
        yield MeasuredWork(
            f"parse, normalise, validate: {method}", _build_reader(method, body), over="json.loads + jsonschema-rs"
        )
    masker = build_masker(SECRET_KEY, ())
    for name, body in (("2 kB", ANSWER_BY_METHOD["native"]), ("30 events", STREAM_BODY)):
        yield MeasuredWork(
            f"search an answer for the key: {name}", partial(masker.mask_body, body), over="json.loads + jsonschema-rs"
        )
    yield MeasuredWork(
        "total per call: constrained", _build_whole_turn("constrained"), over="json.loads + jsonschema-rs"
    )


def _build_reader(method: str, body: bytes) -> Work:
    setup, ask = _build_turn(method)

    def read() -> object:
        return _read_and_dispatch(setup, ask, body)

    assert _read_and_dispatch(setup, ask, body) == [True], f"{method} does not read its answer"
    return read


def _build_whole_turn(method: str) -> Work:
    """Return work that builds a request and reads its answer."""
    setup, _ = _build_turn(method)

    def call() -> object:
        ask = build_ask(setup, 1, [{"role": "user", "content": "hi"}], has_tools=True)
        return _read_and_dispatch(setup, ask, ANSWER_BY_METHOD[method])

    return call


def _build_turn(method: str) -> tuple[TurnSetup, Ask]:
    policy = Policy(method=method)
    setup = prepare_turns("m", policy, system="", tools=ToolRegistry(build_definitions()), options={}, seed=None)
    return setup, build_ask(setup, 1, [{"role": "user", "content": "hi"}], has_tools=True)


def _read_and_dispatch(setup: TurnSetup, ask: Ask, body: bytes) -> list[bool]:
    ask.decoder.feed(body)
    calls = ask.decoder.close().calls
    return [dispatch(call, setup.tools, setup.policy).refusal is None for call in calls]


def iter_compiling_work() -> Iterator[MeasuredWork]:
    """Yield the compilation of schemas and constraints."""
    tools = [tool.to_openai() for tool in build_definitions()]

    def schema() -> object:
        described = {**PARAMETERS, "description": str(next(_tool_set_numbers))}
        check_schema(ToolDefinition("t", "", described))
        return described

    yield MeasuredWork("validator of one tool, first time", schema)
    for constraint in CONSTRAINTS:
        yield MeasuredWork(f"{constraint}, {TOOL_COUNT} tools, first time", partial(_compile_unseen, constraint))
    grammar = compile_constraint(tools, "grammar", ConstraintOptions()).grammar
    yield MeasuredWork("llguidance reads this grammar", lambda: LLMatcher.validate_grammar(grammar))
    apart = compile_constraint(build_tools_without_common_keys(), "grammar", ConstraintOptions()).grammar
    yield MeasuredWork(
        f"grammar, {TOOL_COUNT} tools without a common key",
        partial(_compile_tools, build_tools_without_common_keys, "grammar"),
    )
    yield MeasuredWork("llguidance reads this grammar without a key", lambda: LLMatcher.validate_grammar(apart))
    yield MeasuredWork(
        f"gbnf, {TOOL_COUNT} tools, again", lambda: compile_constraint(tools, "gbnf", ConstraintOptions())
    )
    yield MeasuredWork("building the tools of a “first time” row", build_unseen_tools)


def _compile_unseen(constraint: str) -> object:
    return _compile_tools(build_unseen_tools, constraint)


def _compile_tools(build_tools: Callable[[], list[JsonObject]], constraint: str) -> object:
    return compile_constraint(build_tools(), constraint, ConstraintOptions())


def iter_masking_work(vocabulary: Vocabulary) -> Iterator[MeasuredWork]:
    """Yield the masks of an answer's tokens, by llguidance alone and by the engine."""
    tools = [tool.to_openai() for tool in build_definitions()]
    grammar = compile_constraint(tools, "grammar", ConstraintOptions()).grammar
    tokens = vocabulary.tokenizer.greedy_tokenize(ANSWER_TEXT)
    compiled = LLMatcher.grammar_from_lark(grammar)

    def alone() -> object:
        matcher = LLMatcher(vocabulary.tokenizer, compiled)
        return [(matcher.compute_bitmask(), matcher.consume_token(token)) for token in tokens]

    def mask_tokens() -> object:
        mask = Mask(vocabulary, grammar)
        for token in tokens:
            mask.allowed()
            mask.consume(token)
        return mask

    yield MeasuredWork("mask per token, llguidance alone", alone, share=len(tokens))
    yield MeasuredWork(
        "mask per token, engine", mask_tokens, over="mask per token, llguidance alone", share=len(tokens)
    )


def measure_microseconds(row: MeasuredWork, runs: int) -> float:
    """Return the mean CPU time of one part of the work."""
    began = time.process_time()
    for _ in range(runs):
        row.work()
    return (time.process_time() - began) / runs / row.share * 1e6


def measure_kilobytes(build: Work, count: int) -> float:
    """Return the resident memory of one of `count` objects, with memory of native code.

    It is measured in a forked process, so that no object takes memory that others have freed.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        gc.collect()
        before = _read_resident_bytes()
        kept = [build() for _ in range(count)]
        os.write(writing, str((_read_resident_bytes() - before) / len(kept) / 1024).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as output:
        return float(output.read())


def measure_traced_kilobytes(build: Work, count: int) -> float:
    """Return the memory of one of `count` objects, as Python counts it."""
    gc.collect()
    tracemalloc.start()
    kept = [build() for _ in range(count)]
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / len(kept) / 1024


def _read_resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure_memory(vocabulary: Vocabulary) -> dict[str, float]:
    """Return kilobytes by name of the object."""
    grammar = compile_constraint(build_unseen_tools(), "grammar", ConstraintOptions()).grammar

    def tool() -> object:
        described = {**json.loads(json.dumps(PARAMETERS)), "description": str(next(_tool_set_numbers))}
        return described, jsonschema_rs.validator_for(described)

    return {
        "a tool with its validator": measure_kilobytes(tool, 1000),
        "a mask, one request": measure_kilobytes(lambda: Mask(vocabulary, grammar), 50),
        f"a grammar in the cache, {TOOL_COUNT} tools (gbnf)": measure_traced_kilobytes(
            partial(_compile_unseen, "gbnf"), CACHE_SIZE
        ),
        "a turn, one request": measure_traced_kilobytes(lambda: _build_turn("constrained"), 1000),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="of each row per round (default 200; for masks a tenth)")
    parser.add_argument("--rounds", type=int, default=5, help="of all rows (default 5)")
    options = parser.parse_args()
    vocabulary = read_vocabulary(find_weights(""))
    sizes = measure_memory(vocabulary)
    rows = [*iter_compiling_work(), *iter_masking_work(vocabulary), *iter_reading_work()]
    figures: dict[str, list[float]] = {row.name: [] for row in rows}
    for _ in range(options.rounds):
        for row in rows:
            figures[row.name].append(measure_microseconds(row, max(1, options.runs // (10 if row.share > 1 else 1))))
    print(f"µs of CPU, {options.runs} runs, {options.rounds} rounds, load average {os.getloadavg()[0]:.1f}")
    for row in rows:
        values = figures[row.name]
        ratio = statistics.median(values) / statistics.median(figures[row.over]) if row.over else None
        shown = f" {ratio:.1f} x" if ratio else ""
        print(f"{row.name:44} {statistics.median(values):8.1f} ({min(values):.1f}-{max(values):.1f}){shown}")
    for method in ANSWER_BY_METHOD:
        cost = statistics.median(figures[f"parse, normalise, validate: {method}"])
        print(f"calls read per second of one core, {method:12} {1e6 / cost:8.0f}")
    for name, size in sizes.items():
        print(f"{name:44} {size:8.1f} kB")


if __name__ == "__main__":
    main()
