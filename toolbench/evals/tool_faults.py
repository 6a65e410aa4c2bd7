"""Tools that fail on purpose.

A fault is an object with the name of the tool (`tool`), a key of FAULT_BY_KIND (`kind`) and the condition under which
the fault occurs, which FaultyTools describes. The kind `slow` also needs the delay (`seconds`), the kind `oversized`
the number of rows of its answer (`rows`).
"""

import asyncio
import copy
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from typing import Any

from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.types import JsonObject
from toolbench.evals.workspace import build_refusal

MALFORMED_ANSWER = "Internal gateway page: <html><head><title>50"
OVERSIZED_ANSWER_ROW = {"order": 1000, "state": "kept for the archive", "note": "nothing else is known of it"}


class FaultyTools:
    """A workspace of tools with one fixed answer each, in which a tool may have one fault.

    A fault with `argument` and `prefix` affects calls in which the argument of that name does not begin with `prefix`.
    A fault with `argument` and `most` affects calls in which that argument is no integer or is greater than `most`. Any
    other fault affects the first `times` calls of the tool (default 1).

    Args:
        answers: The answer of each tool, by name.
        faults: The faults; of several faults of one tool, the last one is used.
    """

    def __init__(self, answers: JsonObject, faults: Sequence[JsonObject] = ()) -> None:
        self._answers = dict(answers)
        self._faults = {fault["tool"]: fault for fault in faults}
        self._calls: list[JsonObject] = []
        self._call_counts: Counter[str] = Counter()

    def call(self, name: str, arguments: JsonObject, call_id: str) -> object:
        """Return the tool's answer or the result of its fault, or a refusal for an unknown tool.

        A delayed answer is an awaitable.

        Raises:
            ToolArgumentError: The fault refuses the arguments.
            RuntimeError: The fault is a crash.
        """
        if name not in self._answers:
            return build_refusal(name, "TOOL_NOT_IMPLEMENTED", f"{name} is not implemented")
        self._calls.append({"name": name, "arguments": copy.deepcopy(arguments)})
        self._call_counts[name] += 1
        answer = copy.deepcopy(self._answers[name])
        return run_fault(self._faults.get(name), arguments, self._call_counts[name], answer)

    def snapshot(self) -> JsonObject:
        """Return {"called": calls}: a copy of the calls of known tools so far, in order."""
        return {"called": copy.deepcopy(self._calls)}


def run_fault(fault: JsonObject | None, arguments: JsonObject, call_number: int, answer: object) -> object:
    """Return the answer of a tool, or the result of its fault if the fault affects the call.

    Args:
        fault: The tool's fault; None if it has none.
        arguments: The call's arguments.
        call_number: The number of this call among those of the tool, from 1.
        answer: The answer without a fault.

    Raises:
        ToolArgumentError: The fault refuses the arguments.
        RuntimeError: The fault is a crash.
    """
    if fault is None or not _affects_call(fault, arguments, call_number):
        return answer
    return FAULT_BY_KIND[fault["kind"]](fault, answer)


class DelayedAnswer:
    """An awaitable that returns a tool's answer after a delay."""

    def __init__(self, seconds: float, answer: object) -> None:
        self._seconds = seconds
        self._answer = answer

    def __await__(self) -> Generator[Any, None, object]:
        yield from asyncio.sleep(self._seconds).__await__()
        return self._answer


def _affects_call(fault: JsonObject, arguments: JsonObject, call_number: int) -> bool:
    if "prefix" in fault:
        return not str(arguments.get(fault["argument"], "")).startswith(fault["prefix"])
    if "most" in fault:
        value = arguments.get(fault["argument"])
        return not isinstance(value, int) or value > fault["most"]
    return call_number <= int(fault.get("times", 1))


def _return_busy(fault: JsonObject, answer: object) -> object:
    return build_refusal(fault["tool"], "SERVICE_BUSY", "the service is busy; the same call may be made again")


def _raise_crash(fault: JsonObject, answer: object) -> object:
    raise RuntimeError("this tool fails on purpose")


def _raise_refusal(fault: JsonObject, answer: object) -> object:
    raise ToolArgumentError(f"{fault['argument']} must begin with {fault['prefix']}")


def _return_delayed(fault: JsonObject, answer: object) -> object:
    return DelayedAnswer(float(fault["seconds"]), answer)


def _return_oversized(fault: JsonObject, answer: object) -> object:
    return {"orders": [OVERSIZED_ANSWER_ROW] * int(fault["rows"])}


def _return_unserializable(fault: JsonObject, answer: object) -> object:
    return {"order": object()}


def _return_malformed(fault: JsonObject, answer: object) -> object:
    return MALFORMED_ANSWER


FAULT_BY_KIND: dict[str, Callable[[JsonObject, object], object]] = {
    "busy": _return_busy,
    "crashes": _raise_crash,
    "refuses": _raise_refusal,
    "slow": _return_delayed,
    "oversized": _return_oversized,
    "unserializable": _return_unserializable,
    "malformed": _return_malformed,
}

ERROR_CODE_BY_FAULT = {
    "busy": "SERVICE_BUSY",
    "crashes": "INTERNAL_ERROR",
    "refuses": "ARGUMENT_ERROR",
    "slow": "TOOL_TIMEOUT",
    "oversized": "TOOL_OUTPUT_TOO_LARGE",
    "unserializable": "TOOL_OUTPUT_SERIALIZATION_ERROR",
}
"""The error code of a call that a fault of the kind makes fail.

`slow` and `oversized` make a call fail only beyond the limits of time and size; `malformed` makes none fail.
"""
