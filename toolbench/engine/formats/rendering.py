"""Calls, tools and results as a format writes them."""

from collections.abc import Iterable, Sequence

from toolbench.engine.formats.registry import get_format
from toolbench.engine.formats.types import TextCall, Tool, get_function


def render(calls: Sequence[TextCall], *, format: str, text: str = "", reasoning: str = "") -> str:
    """An assistant's answer in a format: reasoning, text, then the calls. Raises PlanError for an unknown format and
    ValueError or TypeError for arguments that are no JSON."""
    form = get_format(format)
    thought = ""
    pair = form.thought or (form.reasoning[0] if form.reasoning else None)
    if reasoning and pair:
        opener, closer = pair
        thought = f"{opener}\n{reasoning}\n{closer}\n\n"
    layout = form.layout
    written = layout.between.join(layout.call(call, place) for place, call in enumerate(calls))
    joined = "\n\n" if text and calls else ""
    return thought + text + joined + (f"{layout.before}{written}{layout.after}" if calls else "")


def render_tools(tools: Iterable[Tool], *, format: str) -> str:
    """The part of a prompt that tells the model which tools there are; "" without tools."""
    wrapped = [{"type": "function", "function": get_function(tool)} for tool in tools]
    return get_format(format).prompt.tools(wrapped) if wrapped else ""


def render_results(results: Sequence[tuple[TextCall, str]], *, format: str) -> str:
    """Calls with their results, in call order, as one text for the role `get_result_role`."""
    prompt = get_format(format).prompt
    written = prompt.results_between.join(
        prompt.result(call, text, place) for place, (call, text) in enumerate(results)
    )
    return prompt.results_before + written + prompt.results_after


def render_result(call: TextCall, content: str, *, format: str) -> str:
    """One result, as the format gives it back."""
    return render_results([(call, content)], format=format)


def get_result_role(format: str) -> str:
    """The role under which results are given back."""
    return get_format(format).prompt.role
