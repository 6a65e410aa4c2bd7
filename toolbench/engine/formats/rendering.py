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
    markers = text_format.thought or (text_format.reasoning[0] if text_format.reasoning else None)
    if reasoning and markers:
        opener, closer = markers
        reasoning_text = f"{opener}\n{reasoning}\n{closer}\n\n"
    layout = text_format.layout
    calls_text = layout.between.join(layout.call(call, index) for index, call in enumerate(calls))
    separator = "\n\n" if text and calls else ""
    return reasoning_text + text + separator + (f"{layout.before}{calls_text}{layout.after}" if calls else "")


def render_tools(tools: Iterable[Tool], *, format: str) -> str:
    """Render the part of a prompt that describes the tools; "" without tools."""
    tools_json = [{"type": "function", "function": get_function(tool)} for tool in tools]
    return get_format(format).prompt.tools(tools_json) if tools_json else ""


def render_results(results: Sequence[tuple[TextCall, str]], *, format: str) -> str:
    """Render (call, result) pairs, in call order, as one text for the role of `get_result_role`."""
    prompt = get_format(format).prompt
    results_text = prompt.results_between.join(
        prompt.result(call, text, index) for index, (call, text) in enumerate(results)
    )
    return prompt.results_before + results_text + prompt.results_after


def render_result(call: TextCall, content: str, *, format: str) -> str:
    """Render the result of one call, as `render_results` does."""
    return render_results([(call, content)], format=format)


def get_result_role(format: str) -> str:
    """Return the role of the message that returns results."""
    return get_format(format).prompt.role
