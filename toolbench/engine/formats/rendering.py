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
    form = get_format(format)
    thought = ""
    pair = form.thought or (form.reasoning[0] if form.reasoning else None)
    if reasoning and pair:
        opener, closer = pair
        thought = f"{opener}\n{reasoning}\n{closer}\n\n"
    layout = form.layout
    written = layout.between.join(layout.call(call, index) for index, call in enumerate(calls))
    joined = "\n\n" if text and calls else ""
    return thought + text + joined + (f"{layout.before}{written}{layout.after}" if calls else "")


def render_tools(tools: Iterable[Tool], *, format: str) -> str:
    """Render the part of a prompt that describes the tools; "" without tools."""
    wrapped = [{"type": "function", "function": get_function(tool)} for tool in tools]
    return get_format(format).prompt.tools(wrapped) if wrapped else ""


def render_results(results: Sequence[tuple[TextCall, str]], *, format: str) -> str:
    """Render (call, result) pairs, in call order, as one text for the role of `get_result_role`."""
    prompt = get_format(format).prompt
    written = prompt.results_between.join(
        prompt.result(call, text, index) for index, (call, text) in enumerate(results)
    )
    return prompt.results_before + written + prompt.results_after


def render_result(call: TextCall, content: str, *, format: str) -> str:
    """Render the result of one call, as `render_results` does."""
    return render_results([(call, content)], format=format)


def get_result_role(format: str) -> str:
    """Return the role of the message that returns results."""
    return get_format(format).prompt.role
