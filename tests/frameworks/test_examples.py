"""Examples of docs/frameworks.md, run with the real frameworks: equal output and finished tasks."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.running import HERMES_PERSONA, NATIVE_PERSONA, ROOT, read_blocks, run_program, serve_alias
from tests.gateway.running import read_traces
from toolbench.adapters.python_tools import build_tool_definition
from toolbench.lab.cases.files import import_cases
from toolbench.lab.models import GatewayTrace

pytestmark = [pytest.mark.frameworks, pytest.mark.django_db(transaction=True)]

PAGE = (ROOT / "docs/frameworks.md").read_text("utf-8")
FRAMEWORKS = {
    "LangChain": "langchain",
    "LlamaIndex": "llama-index",
    "CrewAI": "crewai",
    "Pydantic AI": "pydantic-ai",
    "OpenAI Agents SDK": "openai-agents",
}
WITH_ADAPTERS = ("LangChain", "LlamaIndex", "CrewAI")
# Replacements in an example: the other wire format that the page names, and streaming.
OTHER_WIRES = {
    "LangChain": ('base_url="', 'use_responses_api=True, base_url="'),
    "Pydantic AI": ("OpenAIChatModel", "OpenAIResponsesModel"),
    "OpenAI Agents SDK": ("OpenAIResponsesModel", "OpenAIChatCompletionsModel"),
}
STREAMED_RUN = """import asyncio

async def ask(question):
    result = Runner.run_streamed(agent, question)
    async for _ in result.stream_events():
        pass
    print(result.final_output)

asyncio.run(ask("""
STREAMS = {
    "LangChain": ('base_url="', 'streaming=True, base_url="'),
    "CrewAI": ('base_url="', 'stream=True, base_url="'),
    "Pydantic AI": ("run_sync(QUESTION).output", "run_stream_sync(QUESTION).get_output()"),
    "OpenAI Agents SDK": ("print(Runner.run_sync(agent, QUESTION).final_output)", f"{STREAMED_RUN}QUESTION))"),
}
QUESTION = '"How warm is it in Oslo, in Fahrenheit?"'
PRINT_TOOLS = "\nprint(json.dumps([tool.to_openai() for tool in tools.registry.definitions]))\n"


async def run_example(heading: str, persona: str, folder: Path, program: str) -> tuple[str, list[GatewayTrace]]:
    """Run the program against a gateway; return its output and the stored traces of its requests."""
    async with serve_alias(persona) as (url, token):
        program = program.replace("http://127.0.0.1:8001", url).replace("tb_…", token)
        path = folder / "example.py"
        path.write_text(program, "utf-8")
        exit_code, output, errors = await run_program(FRAMEWORKS[heading], folder, str(path))
    assert exit_code == 0, errors[-3000:]
    return output, await read_traces(3)


def list_calls(trace: GatewayTrace) -> list[tuple[str, Any]]:
    """Return the names and arguments of the calls that the gateway sent to the client."""
    answer = json.loads(bytes(trace.traffic_line or trace.client_response or b""))
    answer = answer.get("response", answer)
    items = answer["output"] if "output" in answer else answer["choices"][0]["message"].get("tool_calls") or []
    calls = [item.get("function", item) for item in items if item["type"] in ("function", "function_call")]
    return [(call["name"], json.loads(call["arguments"])) for call in calls]


def check_task(traces: list[GatewayTrace]) -> None:
    """Check that each task was finished by the same two calls, one after the other, and an answer."""
    assert {trace.status for trace in traces} == {200}
    calls = [list_calls(trace) for trace in traces]
    task = [[("get_weather", {"city": "Oslo"})], [("convert_to_fahrenheit", {"celsius": 4})], []]
    assert len(calls) % 3 == 0
    assert calls == task * (len(calls) // 3)


@pytest.mark.parametrize("persona", [NATIVE_PERSONA, HERMES_PERSONA])
@pytest.mark.parametrize("heading", FRAMEWORKS)
def test_framework_example_prints_the_output_of_the_page(heading: str, persona: str, tmp_path: Path) -> None:
    program, expected = read_blocks(PAGE, heading, "python"), read_blocks(PAGE, heading, "text")
    output, traces = asyncio.run(run_example(heading, persona, tmp_path, program))
    assert output == expected
    check_task(traces)


@pytest.mark.parametrize("heading", OTHER_WIRES)
def test_framework_example_works_with_the_other_wire_format(heading: str, tmp_path: Path) -> None:
    program, expected = read_blocks(PAGE, heading, "python"), read_blocks(PAGE, heading, "text")
    output, traces = asyncio.run(run_example(heading, NATIVE_PERSONA, tmp_path, program.replace(*OTHER_WIRES[heading])))
    assert output == expected
    check_task(traces)
    assert {trace.dialect for trace in traces} == {"chat" if heading == "OpenAI Agents SDK" else "responses"}


@pytest.mark.parametrize("heading", STREAMS)
def test_framework_example_works_with_streaming(heading: str, tmp_path: Path) -> None:
    program, expected = read_blocks(PAGE, heading, "python"), read_blocks(PAGE, heading, "text")
    before, after = (text.replace("QUESTION", QUESTION) for text in STREAMS[heading])
    assert before in program
    output, traces = asyncio.run(run_example(heading, HERMES_PERSONA, tmp_path, program.replace(before, after)))
    assert output == expected
    check_task(traces)
    assert {trace.stream for trace in traces} == {True}


@pytest.mark.parametrize("heading", WITH_ADAPTERS)
def test_read_tools_have_the_definitions_that_the_framework_sends(heading: str, tmp_path: Path) -> None:
    program = "import json\n" + read_blocks(PAGE, heading, "python") + PRINT_TOOLS
    output, traces = asyncio.run(run_example(heading, NATIVE_PERSONA, tmp_path, program))
    sent = json.loads(bytes(traces[0].client_request or b""))["tools"]
    assert json.loads(output.splitlines()[-1]) == [build_tool_definition(tool).to_openai() for tool in sent]


def test_build_case_file_of_the_langchain_example_can_be_imported(tmp_path: Path) -> None:
    asyncio.run(run_example("LangChain", NATIVE_PERSONA, tmp_path, read_blocks(PAGE, "LangChain", "python")))
    imported = import_cases((tmp_path / "weather.jsonl").read_text("utf-8"))
    assert [case.title for case in imported.new] == ["get_weather: How warm is it in Oslo?"]
