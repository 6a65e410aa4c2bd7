"""Rendering of calls, tools and results in a text format."""

from collections.abc import Iterable, Sequence

from toolbench.engine.formats.registry import get_format
from toolbench.engine.formats.types import TextCall, Tool, get_function


def render(calls: Sequence[TextCall], *, format: str, text: str = "", reasoning: str = "") -> str:
    """Render an assistant's answer: reasoning, text, then the calls.

    Reasoning is left out if the format has no markers for it.

    Raises:
        PlanError: the format is unknown.
        ValueError, TypeError: JSON cannot hold the arguments.
    """
    text_format = get_format(format)
    reasoning_text = ""
    markers = text_format.written_reasoning_markers or (
        text_format.reasoning_markers[0] if text_format.reasoning_markers else None
    )
    if reasoning and markers:
        start_marker, end_marker = markers
        reasoning_text = f"{start_marker}\n{reasoning}\n{end_marker}\n\n"
    layout = text_format.layout
    calls_text = layout.between_calls.join(layout.write_call(call, index) for index, call in enumerate(calls))
    separator = "\n\n" if text and calls else ""
    written_calls = f"{layout.before_calls}{calls_text}{layout.after_calls}" if calls else ""
    return reasoning_text + text + separator + written_calls


def render_tools(tools: Iterable[Tool], *, format: str) -> str:
    """Render the part of a prompt that describes the tools; "" without tools.

    Raises:
        PlanError: the format is unknown and there are tools.
    """
    tools_json = [{"type": "function", "function": get_function(tool)} for tool in tools]
    return get_format(format).prompt.write_tools(tools_json) if tools_json else ""


def render_results(results: Sequence[tuple[TextCall, str]], *, format: str) -> str:
    """Render (call, result) pairs as one text.

    Raises:
        PlanError: the format is unknown.
    """
    prompt = get_format(format).prompt
    results_text = prompt.results_between.join(
        prompt.write_result(call, text, index) for index, (call, text) in enumerate(results)
    )
    return prompt.results_before + results_text + prompt.results_after
