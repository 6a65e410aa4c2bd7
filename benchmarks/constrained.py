"""Constraints in a real llama.cpp: does every answer of the local model obey them?

`python -m benchmarks.constrained --trials 100` asks for calls of small tools, with a prompt that describes no format,
and checks every answer. It prints a row for each way of constraining: the number of answers, of those refused and those
truncated at the token limit, and of the others those that are valid for the keywords that the constraint enforces and
those that are valid for the tool's own schema. Then it prints the keywords that were dropped. The exit code is 1 if a
request was refused, or an answer that is not truncated breaks its constraint.
"""

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
from functools import partial
from http import HTTPStatus
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
SIZE_LIMITS = SizeLimits(max_string_length=40, max_items=4)  # so that the answers of a small model end
CONSTRAINT_MODES = {
    "response_format": ("response_format", ""),
    "gbnf": ("gbnf", ""),
    "llguidance": ("grammar", ""),
    "gbnf, hermes": ("gbnf", "hermes"),
    "llguidance, generic XML": ("grammar", "generic_xml"),
}
TABLE_HEAD = "| constraint | answers | refused | truncated | valid as kept | as asked |"
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class LocalServer:
    """Address, key and model of a local server."""

    url: str
    key: str
    model: str


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """Answer and the results of its checks.

    Attributes:
        status: HTTP status.
        is_truncated: whether the token limit ended it.
        obeys_constraint: whether it is a call that is valid for the keywords that the constraint enforces.
        obeys_schema: whether its arguments are valid for the tool's own schema as well.
        text: text of the answer, or the body of an error.
    """

    status: int
    is_truncated: bool
    obeys_constraint: bool
    obeys_schema: bool
    text: str

    @property
    def is_wrong(self) -> bool:
        """Whether the request was refused, or an answer that is not truncated breaks the constraint."""
        return self.status != HTTPStatus.OK or not (self.is_truncated or self.obeys_constraint)


@contextmanager
def run_server() -> Iterator[LocalServer]:
    """Run llama.cpp with the packaged model during the block."""
    command = [sys.executable, "-m", "toolbench.providers.llama", "--template", "own"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            ready = json.loads(process.stdout.readline())
            yield LocalServer(ready["url"], ready["key"], ready["model"])
        finally:
            process.terminate()


def run_trial(server: LocalServer, way: str, number: int, max_tokens: int) -> CheckedAnswer:
    """Request a call of one tool at temperature 1, with the trial's number as seed; check the answer."""
    constraint, format = CONSTRAINT_MODES[way]
    function = TOOLS[number % len(TOOLS)]
    tool: JsonObject = {"type": "function", "function": function}
    options = ConstraintOptions(allows_final=False, text_format=format, limits=SIZE_LIMITS)
    body = {
        "model": server.model,
        "messages": [{"role": "user", "content": f"Call {function['name']}."}],
        "max_tokens": max_tokens,
        "temperature": 1.0,
        "seed": number,
        **compile_constraint([tool], constraint, options).request_fields,
    }
    headers = {"Authorization": f"Bearer {server.key}"}
    answer = httpx.post(f"{server.url}/v1/chat/completions", json=body, headers=headers, timeout=600, trust_env=False)
    if answer.status_code != HTTPStatus.OK:
        return CheckedAnswer(answer.status_code, False, False, False, answer.text)
    choice = answer.json()["choices"][0]
    text = choice["message"]["content"] or ""
    return check_answer(way, tool, text, is_truncated=choice["finish_reason"] == "length")


def check_answer(way: str, tool: JsonObject, text: str, *, is_truncated: bool) -> CheckedAnswer:
    """Check the text of an answer against the constraint and the tool's schema."""
    constraint, format = CONSTRAINT_MODES[way]
    call = parse_call(text, format, tool)
    answers = build_allowed_answers([tool], allows_final=False, support=SCHEMA_SUPPORT[constraint], limits=SIZE_LIMITS)
    obeys = call is not None and jsonschema_rs.is_valid(build_answer_schema(answers), call, validate_formats=True)
    schema = tool["function"]["parameters"]
    is_valid = call is not None and jsonschema_rs.is_valid(schema, call.get("arguments"), validate_formats=True)
    return CheckedAnswer(HTTPStatus.OK, is_truncated, obeys, obeys and is_valid, text)


def parse_call(text: str, format: str, tool: JsonObject) -> JsonObject | None:
    """Return the call as `{"name": …, "arguments": …}`; None if the text is not one call."""
    if format:
        calls = formats.parse(text, format=format, tools=[tool]).calls
        return {"name": calls[0].name, "arguments": calls[0].arguments} if len(calls) == 1 else None
    try:
        value = read_json(text)
    except InvalidJsonError:
        return None
    return value if isinstance(value, dict) else None


def count_dropped_keywords(way: str) -> Counter[str]:
    """Return how many times each keyword of the tools is dropped."""
    constraint, format = CONSTRAINT_MODES[way]
    options = ConstraintOptions(allows_final=False, text_format=format, limits=SIZE_LIMITS)
    tools = [{"type": "function", "function": function} for function in TOOLS]
    return Counter(item.keyword for item in compile_constraint(tools, constraint, options).dropped_keywords)


def print_report(way: str, answers: Sequence[CheckedAnswer]) -> None:
    """Print the row of one way, and each answer that is wrong."""
    refused = sum(answer.status != HTTPStatus.OK for answer in answers)
    truncated = sum(answer.is_truncated for answer in answers)
    whole = [answer for answer in answers if answer.status == HTTPStatus.OK and not answer.is_truncated]
    obeys_constraint = sum(answer.obeys_constraint for answer in whole)
    obeys_schema = sum(answer.obeys_schema for answer in whole)
    shares = f"{obeys_constraint} of {len(whole)} | {obeys_schema} of {len(whole)}"
    print(f"| {way} | {len(answers)} | {refused} | {truncated} | {shares} |", flush=True)
    for answer in answers:
        if answer.is_wrong:
            print(f"  wrong answer, status {answer.status}: {write_json(answer.text[:300])}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.constrained", description=__doc__)
    parser.add_argument("--trials", type=int, default=100, help="for each way (default 100)")
    parser.add_argument("--tokens", type=int, default=96, help="limit of an answer (default 96)")
    parser.add_argument(
        "--ways", nargs="+", choices=list(CONSTRAINT_MODES), default=list(CONSTRAINT_MODES), help="default: all"
    )
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}\n\n{TABLE_HEAD}\n{'|---' * TABLE_HEAD.count(' | ')}|---|")
    with run_server() as server, ThreadPoolExecutor(2) as pool:
        wrong = 0
        for way in options.ways:
            run = partial(run_trial, server, way, max_tokens=options.tokens)
            answers = list(pool.map(run, range(options.trials)))
            print_report(way, answers)
            wrong += sum(answer.is_wrong for answer in answers)
    for way in options.ways:
        dropped = ", ".join(f"{keyword} {count}" for keyword, count in sorted(count_dropped_keywords(way).items()))
        print(f"dropped for {way}: {dropped or 'nothing'}")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
