"""Whether a real llama.cpp keeps to what it is held by: the local model, held in each way, answers small requests with
no help from the prompt, and every answer is checked.

`python -m benchmarks.constrained --trials 100`. Prints one row per way: answers, those cut by length, and of the others
those that are valid for the keywords that the dialect keeps, and for the tool's own schema; then what was dropped."""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import jsonschema_rs

from toolbench.engine import formats
from toolbench.engine.constraints.allowed_answers import build_allowed_answers, build_answer_schema
from toolbench.engine.constraints.compiling import ConstraintOptions, compile_constraint
from toolbench.engine.constraints.schema_support import SCHEMA_SUPPORT, SizeLimits
from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import read_json, write_json
from toolbench.engine.types import JsonObject

TOOLS: list[JsonObject] = json.loads((Path(__file__).parent / "data" / "constrained_tools.json").read_text("utf-8"))
SIZE_LIMITS = SizeLimits(max_string_length=40, max_items=4)  # so that a small model comes to an end
CONSTRAINT_MODES = {
    "response_format": ("response_format", ""),
    "gbnf": ("gbnf", ""),
    "llguidance": ("grammar", ""),
    "gbnf, hermes": ("gbnf", "hermes"),
    "llguidance, generic XML": ("grammar", "generic_xml"),
}
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class LocalServer:
    url: str
    key: str
    model: str


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """One answer: its HTTP status, whether it was cut by length, whether it is valid for what the dialect keeps, and
    for the tool's own schema."""

    status: int
    cut: bool
    kept: bool
    own: bool
    text: str


@contextmanager
def run_server() -> Iterator[LocalServer]:
    """llama.cpp with the packaged model, in a process of its own."""
    command = [sys.executable, "-m", "toolbench.providers.llama", "--template", "own"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            said = json.loads(process.stdout.readline())
            yield LocalServer(said["url"], said["key"], said["model"])
        finally:
            process.terminate()


def run_trial(server: LocalServer, way: str, number: int, most: int) -> CheckedAnswer:
    """One request for a call of one tool, sampled at temperature 1 with its number as seed."""
    constraint, format = CONSTRAINT_MODES[way]
    function = TOOLS[number % len(TOOLS)]
    tool: JsonObject = {"type": "function", "function": function}
    asked = ConstraintOptions(allows_final=False, text_format=format, limits=SIZE_LIMITS)
    body = {
        "model": server.model,
        "messages": [{"role": "user", "content": f"Call {function['name']}."}],
        "max_tokens": most,
        "temperature": 1.0,
        "seed": number,
        **compile_constraint([tool], constraint, asked).request_fields,
    }
    headers = {"Authorization": f"Bearer {server.key}"}
    answer = httpx.post(f"{server.url}/v1/chat/completions", json=body, headers=headers, timeout=600, trust_env=False)
    if answer.status_code != 200:
        return CheckedAnswer(answer.status_code, False, False, False, answer.text)
    choice = answer.json()["choices"][0]
    text = choice["message"]["content"] or ""
    return check_answer(way, tool, text, cut=choice["finish_reason"] == "length")


def check_answer(way: str, tool: JsonObject, text: str, *, cut: bool) -> CheckedAnswer:
    constraint, format = CONSTRAINT_MODES[way]
    call = read_call(text, format, tool)
    answers = build_allowed_answers([tool], allows_final=False, support=SCHEMA_SUPPORT[constraint], limits=SIZE_LIMITS)
    kept = call is not None and jsonschema_rs.is_valid(build_answer_schema(answers), call, validate_formats=True)
    own = tool["function"]["parameters"]
    fits = call is not None and jsonschema_rs.is_valid(own, call.get("arguments"), validate_formats=True)
    return CheckedAnswer(200, cut, kept, kept and fits, text)


def read_call(text: str, format: str, tool: JsonObject) -> JsonObject | None:
    """The call as `{"name", "arguments"}`; None where there is none."""
    if format:
        calls = formats.parse(text, format=format, tools=[tool]).calls
        return {"name": calls[0].name, "arguments": calls[0].arguments} if len(calls) == 1 else None
    try:
        value = read_json(text)
    except InvalidJsonError:
        return None
    return value if isinstance(value, dict) else None


def count_dropped_keywords(way: str) -> Counter[str]:
    constraint, format = CONSTRAINT_MODES[way]
    asked = ConstraintOptions(allows_final=False, text_format=format, limits=SIZE_LIMITS)
    tools = [{"type": "function", "function": function} for function in TOOLS]
    return Counter(one.keyword for one in compile_constraint(tools, constraint, asked).dropped_keywords)


def print_report(way: str, seen: Sequence[CheckedAnswer]) -> None:
    whole = [one for one in seen if one.status == 200 and not one.cut]
    kept, own = sum(one.kept for one in whole), sum(one.own for one in whole)
    refused, cut = sum(one.status != 200 for one in seen), sum(one.cut for one in seen)
    print(f"| {way} | {len(seen)} | {refused} | {cut} | {kept} of {len(whole)} | {own} of {len(whole)} |", flush=True)
    for one in seen:
        if one.status != 200 or not (one.cut or one.kept):
            print(f"  not as asked ({one.status}): {write_json(one.text[:300])}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.constrained", description=__doc__)
    parser.add_argument("--trials", type=int, default=100, help="per way (default 100)")
    parser.add_argument("--tokens", type=int, default=96, help="of an answer at most (default 96)")
    parser.add_argument(
        "--ways", nargs="+", choices=list(CONSTRAINT_MODES), default=list(CONSTRAINT_MODES), help="default: all"
    )
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}\n\n| held by | answers | refused | cut | valid as kept | as asked |")
    with run_server() as server, ThreadPoolExecutor(2) as pool:
        for way in options.ways:
            numbers = range(options.trials)
            print_report(
                way, list(pool.map(lambda number, way=way: run_trial(server, way, number, options.tokens), numbers))
            )
    for way in options.ways:
        told = ", ".join(f"{keyword} {count}" for keyword, count in sorted(count_dropped_keywords(way).items()))
        print(f"dropped for {way}: {told or 'nothing'}")


if __name__ == "__main__":
    main()
