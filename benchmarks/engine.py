"""What one call costs on our side of the wire, part by part: schemas, grammars, masks, reading; and memory.

`python -m benchmarks.engine --runs 200 --rounds 5`. Microseconds of this process's CPU, medians over rounds with least
and most in brackets; ratios are to json.loads with jsonschema-rs on the same bytes, and to llguidance alone."""

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
from itertools import count
from pathlib import Path

import jsonschema_rs
from llguidance import LLMatcher

from benchmarks.answers import calling, saying
from toolbench.engine.constrain.compiling import KEPT, Asked, compile_constraint
from toolbench.engine.constrain.dialects import CONSTRAINTS
from toolbench.engine.constrain.mask import Mask, Vocabulary
from toolbench.engine.events import Ask
from toolbench.engine.loop.dispatch import dispatch
from toolbench.engine.loop.preparing import TurnSetup, prepare_turns
from toolbench.engine.loop.turn import ask_turn
from toolbench.engine.messages import JsonObject
from toolbench.engine.policy.policy import Policy
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.tools.validation import check_schema
from toolbench.providers.llama.vocabulary import read_vocabulary
from toolbench.providers.llama.weights import find_weights
from toolbench.providers.masking.secrets import masker_for

TOOLS = 10
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
METHODS = {
    "native": calling(("tool_0", ARGUMENTS)),
    "text_json": saying(f"```json\n{json.dumps({'name': 'tool_0', 'arguments': ARGUMENTS})}\n```"),
    "constrained": saying(json.dumps({"name": "tool_0", "arguments": ARGUMENTS})),
}
KEY = "sk-or-v1-" + "0123456789abcdef" * 4  # of no endpoint
STREAM = b"".join(
    b"data: %s\n\n"
    % json.dumps({"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": f" {at}"}}]}).encode()
    for at in range(30)
)
ANSWER = json.dumps({"name": "tool_0", "arguments": ARGUMENTS}, separators=(",", ":"))
Work = Callable[[], object]
_fresh = count()


@dataclass(frozen=True, slots=True)
class Row:
    """`over` is what the work is a ratio of, `share` what one run of it is divided by."""

    name: str
    work: Work
    over: str = ""
    share: int = 1


def definitions() -> tuple[ToolDefinition, ...]:
    return tuple(ToolDefinition(f"tool_{place}", "Writes something down.", PARAMETERS) for place in range(TOOLS))


def unseen() -> list[JsonObject]:
    """The tools in a set that nobody has compiled yet."""
    described = f"Writes something down, {next(_fresh)}."
    return [replace(tool, description=described).to_openai() for tool in definitions()]


def unlike() -> list[JsonObject]:
    """Such a set whose tools have no key in common."""
    return [_renamed(tool, str(place)) for place, tool in enumerate(unseen())]


def _renamed(tool: JsonObject, sign: str) -> JsonObject:
    written = json.dumps(tool)
    for key in ("title", "kind", "priority", "tags", "lines", "text", "done"):
        written = written.replace(f'"{key}"', f'"{key}_{sign}"')
    renamed: JsonObject = json.loads(written)
    return renamed


def reading() -> Iterator[Row]:
    """A 2 kB answer of each method from its bytes to a call that was checked."""
    validator = jsonschema_rs.validator_for(PARAMETERS)

    def plain() -> object:
        message = json.loads(METHODS["native"])["choices"][0]["message"]
        return validator.is_valid(json.loads(message["tool_calls"][0]["function"]["arguments"]))

    yield Row("json.loads + jsonschema-rs", plain)
    for method, body in METHODS.items():
        yield Row(f"parse, normalise, validate: {method}", _reader(method, body), over="json.loads + jsonschema-rs")
    masker = masker_for(KEY, ())
    for name, body in (("2 kB", METHODS["native"]), ("30 events", STREAM)):
        yield Row(
            f"search an answer for the key: {name}", partial(masker.mask_body, body), over="json.loads + jsonschema-rs"
        )
    yield Row("total per call: constrained", _whole("constrained"), over="json.loads + jsonschema-rs")


def _reader(method: str, body: bytes) -> Work:
    setup, ask = _turn(method)

    def read() -> object:
        return _read(setup, ask, body)

    ready = _read(setup, ask, body)
    assert ready == [True], f"{method} does not read its answer"
    return read


def _whole(method: str) -> Work:
    """The request and its answer."""
    setup, _ = _turn(method)

    def call() -> object:
        ask = ask_turn(setup, 1, [{"role": "user", "content": "hi"}], with_tools=True)
        return _read(setup, ask, METHODS[method])

    return call


def _turn(method: str) -> tuple[TurnSetup, Ask]:
    policy = Policy(method=method)
    setup = prepare_turns("m", policy, system="", tools=ToolRegistry(definitions()), options={}, seed=None)
    return setup, ask_turn(setup, 1, [{"role": "user", "content": "hi"}], with_tools=True)


def _read(setup: TurnSetup, ask: Ask, body: bytes) -> list[bool]:
    ask.decoder.feed(body)
    calls = ask.decoder.close().calls
    return [dispatch(call, setup.tools, setup.policy).refused is None for call in calls]


def compiling() -> Iterator[Row]:
    tools = [tool.to_openai() for tool in definitions()]

    def schema() -> object:
        described = {**PARAMETERS, "description": str(next(_fresh))}
        check_schema(ToolDefinition("t", "", described))
        return described

    yield Row("validator of one tool, first time", schema)
    for constraint in CONSTRAINTS:
        yield Row(f"{constraint}, {TOOLS} tools, first time", partial(_first_time, constraint))
    grammar = compile_constraint(tools, "grammar", Asked()).grammar
    yield Row("llguidance reads such a grammar", lambda: LLMatcher.validate_grammar(grammar))
    apart = compile_constraint(unlike(), "grammar", Asked()).grammar
    yield Row(f"grammar, {TOOLS} tools without a common key", partial(_first_time_of, unlike, "grammar"))
    yield Row("llguidance reads that one", lambda: LLMatcher.validate_grammar(apart))
    yield Row(f"gbnf, {TOOLS} tools, again", lambda: compile_constraint(tools, "gbnf", Asked()))
    yield Row("the sets alone, as in “first time”", unseen)


def _first_time(constraint: str) -> object:
    return _first_time_of(unseen, constraint)


def _first_time_of(made: Callable[[], list[JsonObject]], constraint: str) -> object:
    return compile_constraint(made(), constraint, Asked())


def masking(vocabulary: Vocabulary) -> Iterator[Row]:
    tools = [tool.to_openai() for tool in definitions()]
    grammar = compile_constraint(tools, "grammar", Asked()).grammar
    tokens = vocabulary.tokenizer.greedy_tokenize(ANSWER)
    compiled = LLMatcher.grammar_from_lark(grammar)

    def alone() -> object:
        matcher = LLMatcher(vocabulary.tokenizer, compiled)
        return [(matcher.compute_bitmask(), matcher.consume_token(token)) for token in tokens]

    def ours() -> object:
        mask = Mask(vocabulary, grammar)
        for token in tokens:
            mask.allowed()
            mask.consume(token)
        return mask

    yield Row("mask per token, llguidance alone", alone, share=len(tokens))
    yield Row("mask per token, ours", ours, over="mask per token, llguidance alone", share=len(tokens))


def microseconds(row: Row, runs: int) -> float:
    """CPU of one run's share."""
    began = time.process_time()
    for _ in range(runs):
        row.work()
    return (time.process_time() - began) / runs / row.share * 1e6


def kilobytes(make: Work, many: int) -> float:
    """Resident memory that one more of these takes, Rust's included; in a process of its own, so that nothing fills
    holes that others left."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        gc.collect()
        before = _resident()
        kept = [make() for _ in range(many)]
        os.write(writing, str((_resident() - before) / len(kept) / 1024).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as said:
        return float(said.read())


def traced_kilobytes(make: Work, many: int) -> float:
    """The same for what is Python's alone, counted by Python."""
    gc.collect()
    tracemalloc.start()
    kept = [make() for _ in range(many)]
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / len(kept) / 1024


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory(vocabulary: Vocabulary) -> dict[str, float]:
    grammar = compile_constraint(unseen(), "grammar", Asked()).grammar

    def tool() -> object:
        described = {**json.loads(json.dumps(PARAMETERS)), "description": str(next(_fresh))}
        return described, jsonschema_rs.validator_for(described)

    return {
        "a tool with its validator": kilobytes(tool, 1000),
        "a mask, one request": kilobytes(lambda: Mask(vocabulary, grammar), 50),
        f"a grammar in the cache, {TOOLS} tools (gbnf)": traced_kilobytes(partial(_first_time, "gbnf"), KEPT),
        "a turn, one request": traced_kilobytes(lambda: _turn("constrained"), 1000),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="per round (default 200; masks a tenth)")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    vocabulary = read_vocabulary(find_weights(""))
    sizes = memory(vocabulary)
    rows = [*compiling(), *masking(vocabulary), *reading()]
    figures: dict[str, list[float]] = {row.name: [] for row in rows}
    for _ in range(options.rounds):
        for row in rows:
            figures[row.name].append(microseconds(row, max(1, options.runs // (10 if row.share > 1 else 1))))
    print(f"µs of CPU, {options.runs} runs, {options.rounds} rounds, load average {os.getloadavg()[0]:.1f}")
    for row in rows:
        values = figures[row.name]
        ratio = statistics.median(values) / statistics.median(figures[row.over]) if row.over else None
        shown = f" {ratio:.1f} x" if ratio else ""
        print(f"{row.name:44} {statistics.median(values):8.1f} ({min(values):.1f}-{max(values):.1f}){shown}")
    for method in METHODS:
        cost = statistics.median(figures[f"parse, normalise, validate: {method}"])
        print(f"calls read per second of one core, {method:12} {1e6 / cost:8.0f}")
    for name, size in sizes.items():
        print(f"{name:44} {size:8.1f} kB")


if __name__ == "__main__":
    main()
