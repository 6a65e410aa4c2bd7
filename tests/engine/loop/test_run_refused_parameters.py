"""Tests of parameters that an endpoint refuses and the loop omits from then on."""

from dataclasses import replace
from typing import Any

import pytest

from tests.engine.scripted_model import (
    LoopRun,
    ScriptItem,
    build_answer,
    build_call,
    build_calling_answer,
    build_plan,
    run_script,
)
from toolbench.engine.events import EndReason, ExchangeError, OmittedParameter

OPTIONS = {"parallel_tool_calls": False, "top_p": 0.5}


def build_refusal(*names: str, code: str = "request_rejected", status: int = 400) -> ExchangeError:
    message = " ".join(f"Unsupported parameter: '{name}'." for name in names)
    return ExchangeError(code, message, status, infrastructure=False)


def run_with_options(
    *script: ScriptItem, left_out: tuple[OmittedParameter, ...] = (), stream: bool = False, **policy: Any
) -> LoopRun:
    settings = {"request_overrides": OPTIONS, "drop_refused_parameters": True, **policy}
    return run_script(replace(build_plan(**settings), seed=7, omitted_parameters=left_out, is_streamed=stream), script)


def list_presence(run: LoopRun, name: str) -> list[bool]:
    return [name in body for body in run.bodies]


def test_refused_parameter_is_omitted_from_all_later_requests() -> None:
    run = run_with_options(build_refusal("seed"), build_calling_answer(build_call()), build_answer())

    assert run.ended.end is EndReason.FINAL
    assert list_presence(run, "seed") == [True, False, False]
    assert list_presence(run, "top_p") == [True, True, True]
    left_out = [
        [(item.name, item.was_omitted_from_start) for item in turn.request.omitted_parameters]
        for turn in run.ended.turns
    ]
    assert left_out == [[], [("seed", False)], [("seed", False)]]
    assert [turn.turn for turn in run.ended.turns] == [0, 0, 1]
    change = run.ended.turns[1].request.changes[-1]
    assert (change.name, change.path, change.before) == ("drop_refused_parameters", "$.seed", "7")


def test_request_without_refused_parameters_is_otherwise_equal() -> None:
    first, second = run_with_options(build_refusal("tool_choice", "seed"), build_answer()).bodies

    assert {name: value for name, value in first.items() if name not in ("tool_choice", "seed")} == second


def test_parameters_refused_one_after_another_are_all_omitted() -> None:
    run = run_with_options(
        build_refusal("seed"), build_refusal("top_p"), build_refusal("parallel_tool_calls"), build_answer()
    )

    assert run.ended.end is EndReason.FINAL
    assert len(run.bodies) == 4
    assert not {"seed", "top_p", "parallel_tool_calls"} & run.bodies[-1].keys()


def test_repeated_refusal_of_same_parameter_ends_after_one_retry() -> None:
    run = run_with_options(build_refusal("seed"), build_refusal("seed"))

    assert run.ended.end is EndReason.PROVIDER_ERROR
    assert len(run.bodies) == 2


@pytest.mark.parametrize(
    "error",
    [
        build_refusal("model"),
        build_refusal("messages"),
        build_refusal("tools"),
        build_refusal("nothing_sent"),
        build_refusal("seed", code="rate_limited", status=429),
        build_refusal("seed", code="server_error", status=500),
        ExchangeError("request_rejected", "Bad request.", 400, infrastructure=False),
    ],
)
def test_other_errors_end_the_run_unchanged(error: ExchangeError) -> None:
    run = run_with_options(error)

    assert run.ended.end is EndReason.PROVIDER_ERROR
    assert run.ended.error == error


def test_refusal_without_policy_ends_the_run() -> None:
    known = (OmittedParameter("seed", "known"),)
    run = run_with_options(build_refusal("seed"), drop_refused_parameters=False, left_out=known)

    assert run.ended.end is EndReason.PROVIDER_ERROR
    assert list_presence(run, "seed") == [True]


def test_parameters_known_as_refused_are_omitted_from_first_request() -> None:
    run = run_with_options(
        build_answer(),
        left_out=(OmittedParameter("seed", "It refused it."), OmittedParameter("min_p", "It refused it.")),
    )

    assert list_presence(run, "seed") == [False]
    assert [(item.name, item.was_omitted_from_start) for item in run.ended.turns[0].request.omitted_parameters] == [
        ("seed", True)
    ]


def test_left_out_parameters_setting_applies_without_drop_policy() -> None:
    run = run_with_options(build_answer(), drop_refused_parameters=False, left_out_parameters=["seed", "top_p"])

    assert {"seed", "top_p"}.isdisjoint(run.bodies[0])
    assert [item.was_omitted_from_start for item in run.ended.turns[0].request.omitted_parameters] == [True, True]


def test_calls_stay_serial_if_parallel_tool_calls_is_omitted() -> None:
    run = run_with_options(
        build_refusal("parallel_tool_calls"),
        build_calling_answer(build_call(), build_call(call_id="c2")),
        build_answer(),
    )

    assert len(run.ran) == 1


@pytest.mark.parametrize("length", [299, 300, 301])
def test_omitted_parameter_reason_has_300_characters_at_most(length: int) -> None:
    message = "Unsupported parameter: 'seed'.".ljust(length, "x")
    error = ExchangeError("request_rejected", message, 400, infrastructure=False)
    (kept,) = run_with_options(error, build_answer()).ended.turns[1].request.omitted_parameters
    assert kept.reason == message[:300]
