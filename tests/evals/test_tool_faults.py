"""Tests of the faults of simulated tools, how often they occur, and the answers after them."""

import asyncio

import pytest

from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.events import Outcome
from toolbench.engine.loop.result_envelope import build_envelope
from toolbench.evals.tool_faults import DelayedAnswer, FaultyTools

GOOD = {"depot": "Gdansk"}


def tools(kind: str, **more: object) -> FaultyTools:
    return FaultyTools({"track": GOOD}, [{"tool": "track", "kind": kind, **more}])


def track(faulty: FaultyTools, **arguments: object) -> object:
    return faulty.call("track", dict(arguments), "c1")


def codes(value: object) -> list[str]:
    return [str(error["code"]) for error in build_envelope(Outcome(value), "track").errors]


def test_a_busy_tool_serves_after_as_many_refusals_as_said() -> None:
    faulty = tools("busy", times=2)
    assert [codes(track(faulty)) for _ in range(3)] == [["SERVICE_BUSY"], ["SERVICE_BUSY"], []]
    assert len(faulty.snapshot()["called"]) == 3


def test_a_crash_is_an_exception_and_the_next_call_is_good() -> None:
    faulty = tools("crashes")
    with pytest.raises(RuntimeError):
        track(faulty)
    assert track(faulty) == GOOD


def test_a_refusal_says_how_to_write_it() -> None:
    faulty = tools("refuses", argument="order", prefix="ORD-")
    with pytest.raises(ToolArgumentError, match="order must begin with ORD-"):
        track(faulty, order=7)
    assert track(faulty, order="ORD-7") == GOOD


def test_a_slow_answer_is_awaited_and_good() -> None:
    answer = track(tools("slow", seconds=0))
    assert isinstance(answer, DelayedAnswer)

    async def waited() -> object:
        return await answer

    assert asyncio.run(waited()) == GOOD


def test_a_list_is_large_until_it_is_limited() -> None:
    faulty = tools("oversized", argument="limit", most=20, rows=400)
    assert len(str(track(faulty))) > 20_000
    assert len(str(track(faulty, limit=21))) > 20_000
    assert track(faulty, limit=20) == GOOD


def test_what_is_no_json_is_told_as_such_and_garbage_passes_for_an_answer() -> None:
    assert codes(track(tools("unserializable"))) == ["TOOL_OUTPUT_SERIALIZATION_ERROR"]
    assert codes(track(tools("malformed"))) == []
    assert "<html" in str(track(tools("malformed")))


def test_an_unknown_tool_is_not_implemented() -> None:
    assert codes(tools("busy").call("fly", {}, "c1")) == ["TOOL_NOT_IMPLEMENTED"]


def test_tools_without_faults_give_their_answers_and_record_the_calls() -> None:
    answers = FaultyTools({"get_weather": {"sky": "clear"}})
    assert answers.call("get_weather", {"city": "Oslo"}, "c1") == {"sky": "clear"}
    assert codes(answers.call("other", {}, "c2")) == ["TOOL_NOT_IMPLEMENTED"]
    assert answers.snapshot() == {"called": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}
