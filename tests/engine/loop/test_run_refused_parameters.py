"""The loop asks again without what an endpoint refuses, and leaves it out from then on."""

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


def refusal(*names: str, code: str = "request_rejected", status: int = 400) -> ExchangeError:
    said = " ".join(f"Unsupported parameter: '{name}'." for name in names)
    return ExchangeError(code, said, status, infrastructure=False)


def played(
    *script: ScriptItem, left_out: tuple[OmittedParameter, ...] = (), stream: bool = False, **policy: Any
) -> LoopRun:
    settings = {"request_overrides": OPTIONS, "drop_refused_parameters": True, **policy}
    return run_script(replace(build_plan(**settings), seed=7, omitted_parameters=left_out, is_streamed=stream), script)


def sent(found: LoopRun, name: str) -> list[bool]:
    return [name in body for body in found.bodies]


def test_refused_parameter_is_left_out_of_all_that_follows() -> None:
    found = played(refusal("seed"), build_calling_answer(build_call()), build_answer())

    assert found.ended.end is EndReason.FINAL
    assert sent(found, "seed") == [True, False, False]
    assert sent(found, "top_p") == [True, True, True]
    left_out = [
        [(item.name, item.was_omitted_from_start) for item in turn.request.omitted_parameters]
        for turn in found.ended.turns
    ]
    assert left_out == [[], [("seed", False)], [("seed", False)]]
    assert [turn.turn for turn in found.ended.turns] == [0, 0, 1]
    change = found.ended.turns[1].request.changes[-1]
    assert (change.name, change.path, change.before) == ("drop_refused_parameters", "$.seed", "7")


def test_request_without_it_is_otherwise_the_same() -> None:
    first, second = played(refusal("tool_choice", "seed"), build_answer()).bodies

    assert {name: value for name, value in first.items() if name not in ("tool_choice", "seed")} == second


def test_parameters_refused_one_after_the_other_are_each_left_out() -> None:
    found = played(refusal("seed"), refusal("top_p"), refusal("parallel_tool_calls"), build_answer())

    assert found.ended.end is EndReason.FINAL
    assert len(found.bodies) == 4
    assert not {"seed", "top_p", "parallel_tool_calls"} & found.bodies[-1].keys()


def test_endpoint_that_goes_on_refusing_is_asked_once_more_only() -> None:
    found = played(refusal("seed"), refusal("seed"))

    assert found.ended.end is EndReason.PROVIDER_ERROR
    assert len(found.bodies) == 2


@pytest.mark.parametrize(
    "error",
    [
        refusal("model"),
        refusal("messages"),
        refusal("tools"),
        refusal("nothing_sent"),
        refusal("seed", code="rate_limited", status=429),
        refusal("seed", code="server_error", status=500),
        ExchangeError("request_rejected", "Bad request.", 400, infrastructure=False),
    ],
)
def test_other_errors_stay_the_errors_they_were(error: ExchangeError) -> None:
    found = played(error)

    assert found.ended.end is EndReason.PROVIDER_ERROR
    assert found.ended.error == error


def test_without_the_policy_a_refusal_ends_the_run() -> None:
    known = (OmittedParameter("seed", "known"),)
    found = played(refusal("seed"), drop_refused_parameters=False, left_out=known)

    assert found.ended.end is EndReason.PROVIDER_ERROR
    assert sent(found, "seed") == [True]


def test_what_is_known_before_is_left_out_of_the_first_request() -> None:
    found = played(
        build_answer(),
        left_out=(OmittedParameter("seed", "It refused it."), OmittedParameter("min_p", "It refused it.")),
    )

    assert sent(found, "seed") == [False]
    assert [(item.name, item.was_omitted_from_start) for item in found.ended.turns[0].request.omitted_parameters] == [
        ("seed", True)
    ]


def test_settings_leave_parameters_out_whatever_the_policy_drops() -> None:
    found = played(build_answer(), drop_refused_parameters=False, left_out_parameters=["seed", "top_p"])

    assert {"seed", "top_p"}.isdisjoint(found.bodies[0])
    assert [item.was_omitted_from_start for item in found.ended.turns[0].request.omitted_parameters] == [True, True]


def test_calls_stay_serial_without_parallel_tool_calls() -> None:
    found = played(
        refusal("parallel_tool_calls"), build_calling_answer(build_call(), build_call(call_id="c2")), build_answer()
    )

    assert len(found.ran) == 1


@pytest.mark.parametrize("length", [299, 300, 301])
def test_refusal_is_kept_with_its_first_300_letters(length: int) -> None:
    message = "Unsupported parameter: 'seed'.".ljust(length, "x")
    error = ExchangeError("request_rejected", message, 400, infrastructure=False)
    (kept,) = played(error, build_answer()).ended.turns[1].request.omitted_parameters
    assert kept.reason == message[:300]
