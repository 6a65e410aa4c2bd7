"""CPU of a turn with two tool calls in the engine, and of its parts, without network and storage.

`python -m benchmarks.turns --runs 400 --rounds 5`. A run has two turns with two calls each and a final answer. The
figures are microseconds of this process's CPU: medians over rounds, with minimum and maximum in brackets.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

from benchmarks.benchmark_trial import build_trial, ignore_event
from benchmarks.trial_answers import GET_CALL, PATCH_CALL, build_calling_answer, build_text_answer
from toolbench.engine.events import Ask, EndReason, Execute, LoopInput, LoopResult, Outcome
from toolbench.engine.loop.dispatch import build_tool_result, dispatch
from toolbench.engine.loop.run import LoopPlan, run_loop
from toolbench.engine.loop.turn import build_ask
from toolbench.engine.loop.turn_setup import prepare_turns
from toolbench.engine.types import JsonObject, Turn

TWO_CALL_ANSWER = build_calling_answer(GET_CALL, PATCH_CALL)
ANSWERS = (TWO_CALL_ANSWER, TWO_CALL_ANSWER, build_text_answer("Done."))
TOOL_RESULT: JsonObject = {
    "facts": {},
    "draft": {"foo": "bar"},
    "locks": {"paths": []},
    "versions": {"draft_etag": "draft:1"},
}


def build_two_call_plan() -> LoopPlan:
    """Return the plan of the benchmark's trial with parallel calls, so that both calls of an answer run."""
    plan = build_trial().plan
    overrides = {name: value for name, value in plan.policy.request_overrides.items() if name != "parallel_tool_calls"}
    return replace(plan, policy=replace(plan.policy, request_overrides=overrides, max_tool_calls_per_turn=None))


def run_loop_once(plan: LoopPlan) -> LoopResult:
    """Run the loop once with prepared answers and tool outcomes."""
    loop = run_loop(plan, ignore_event)
    answers = iter(ANSWERS)
    event = next(loop)
    try:
        while True:
            event = loop.send(_respond(event, answers.__next__))
    except StopIteration as stopped:
        result: LoopResult = stopped.value
        return result


def _respond(event: Ask | Execute, get_answer: Callable[[], bytes]) -> LoopInput:
    if isinstance(event, Ask):
        return _read_answer(event, get_answer())
    return tuple(Outcome(TOOL_RESULT) for _ in event.calls)


def _read_answer(ask: Ask, body: bytes) -> Turn:
    ask.decoder.feed(body)
    return ask.decoder.close()


def list_parts(plan: LoopPlan) -> dict[str, Callable[[], object]]:
    """Return the parts of a turn by name, as in the second turn of the loop; dispatch is for both calls."""

    def prepare() -> object:
        return prepare_turns(
            plan.model, plan.policy, system=plan.system, tools=plan.tools, options=plan.options, seed=plan.seed
        )

    setup = prepare_turns(
        plan.model, plan.policy, system=plan.system, tools=plan.tools, options=plan.options, seed=plan.seed
    )
    ended = run_loop_once(plan)
    assert ended.end is EndReason.FINAL
    messages = ended.history[:4]  # user, answer, two results
    ask = build_ask(setup, 1, messages, has_tools=True)
    calls = _read_answer(ask, TWO_CALL_ANSWER).calls
    assert len(calls) == 2

    def dispatch_calls() -> object:
        dispatched = [dispatch(call, setup.tools, plan.policy) for call in calls]
        return [build_tool_result(call, Outcome(TOOL_RESULT), plan.policy) for call in dispatched]

    return {
        "prepare, once per run": prepare,
        "build the request": lambda: build_ask(setup, 1, messages, has_tools=True),
        "decode the answer": lambda: _read_answer(ask, TWO_CALL_ANSWER),
        "dispatch, write results": dispatch_calls,
    }


def measure_cpu_us(work: Callable[[], object], runs: int) -> float:
    """Return the mean CPU time of a call."""
    began = time.process_time()
    for _ in range(runs):
        work()
    return (time.process_time() - began) / runs * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turns", description=__doc__)
    parser.add_argument("--runs", type=int, default=400, help="per round and part (default 400)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of all parts (default 5)")
    options = parser.parse_args()
    plan = build_two_call_plan()
    whole = f"whole loop, per turn of {len(ANSWERS)}"
    works = {whole: lambda: run_loop_once(plan), **list_parts(plan)}
    figures: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(options.rounds):
        for name, work in works.items():
            share = len(ANSWERS) if name == whole else 1
            figures[name].append(measure_cpu_us(work, options.runs) / share)
    print(f"µs of CPU, {options.runs} runs, {options.rounds} rounds, load average {os.getloadavg()[0]:.1f}")
    for name, values in figures.items():
        print(f"{name:26} {statistics.median(values):6.0f} ({min(values):.0f}-{max(values):.0f})")


if __name__ == "__main__":
    main()
