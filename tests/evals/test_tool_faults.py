"""Tests of the faults of simulated tools, how often they occur, and the answers after them."""

import asyncio

import pytest

from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.events import Outcome
from toolbench.engine.loop.result_envelope import build_envelope
from toolbench.evals.tool_faults import DelayedAnswer, FaultyTools

GOOD = {"depot": "Gdansk"}


def build_tools(kind: str, **more: object) -> FaultyTools:
    return FaultyTools({"track": GOOD}, [{"tool": "track", "kind": kind, **more}])


def track(faulty: FaultyTools, **arguments: object) -> object:
    return faulty.call("track", dict(arguments), "c1")


def list_codes(value: object) -> list[str]:
    return [str(error["code"]) for error in build_envelope(Outcome(value), "track").errors]


def test_faulty_tools_busy_serves_after_given_number_of_refusals() -> None:
    faulty = build_tools("busy", times=2)
    assert [list_codes(track(faulty)) for _ in range(3)] == [["SERVICE_BUSY"], ["SERVICE_BUSY"], []]
    assert len(faulty.snapshot()["called"]) == 3


def test_faulty_tools_crash_raises_once_and_then_serves() -> None:
    faulty = build_tools("crashes")
    with pytest.raises(RuntimeError):
        track(faulty)
    assert track(faulty) == GOOD


def test_faulty_tools_refusal_names_the_required_prefix() -> None:
    faulty = build_tools("refuses", argument="order", prefix="ORD-")
    with pytest.raises(ToolArgumentError, match="order must begin with ORD-"):
        track(faulty, order=7)
    assert track(faulty, order="ORD-7") == GOOD


def test_faulty_tools_slow_answer_can_be_awaited() -> None:
    answer = track(build_tools("slow", seconds=0))
    assert isinstance(answer, DelayedAnswer)

    async def await_answer() -> object:
        return await answer

    assert asyncio.run(await_answer()) == GOOD


def test_faulty_tools_list_is_oversized_until_it_is_limited() -> None:
    faulty = build_tools("oversized", argument="limit", most=20, rows=400)
    assert len(str(track(faulty))) > 20_000
    assert len(str(track(faulty, limit=21))) > 20_000
    assert track(faulty, limit=20) == GOOD


def test_faulty_tools_unserializable_fails_and_malformed_is_an_answer() -> None:
    assert list_codes(track(build_tools("unserializable"))) == ["TOOL_OUTPUT_SERIALIZATION_ERROR"]
    assert list_codes(track(build_tools("malformed"))) == []
    assert "<html" in str(track(build_tools("malformed")))


def test_faulty_tools_unknown_tool_is_not_implemented() -> None:
    assert list_codes(build_tools("busy").call("fly", {}, "c1")) == ["TOOL_NOT_IMPLEMENTED"]


def test_faulty_tools_without_faults_answer_and_record_calls() -> None:
    answers = FaultyTools({"get_weather": {"sky": "clear"}})
    assert answers.call("get_weather", {"city": "Oslo"}, "c1") == {"sky": "clear"}
    assert list_codes(answers.call("other", {}, "c2")) == ["TOOL_NOT_IMPLEMENTED"]
    assert answers.snapshot() == {"called": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}
