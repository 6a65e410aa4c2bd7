"""Calls, tools and results as a format writes them."""

from collections.abc import Iterable, Sequence

from toolbench.engine.formats.registry import format_named
from toolbench.engine.formats.values import TextCall, Tool, function_of


def render(calls: Sequence[TextCall], *, format: str, text: str = "", reasoning: str = "") -> str:
    """An assistant's answer in a format: reasoning, text, then the calls. Raises PlanError for an unknown format and
    ValueError or TypeError for arguments that are no JSON."""
    form = format_named(format)
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
    wrapped = [{"type": "function", "function": function_of(tool)} for tool in tools]
    return format_named(format).prompt.tools(wrapped) if wrapped else ""


def render_results(results: Sequence[tuple[TextCall, str]], *, format: str) -> str:
    """Calls with their results, in call order, as one text for the role `result_role`."""
    prompt = format_named(format).prompt
    written = prompt.results_between.join(
        prompt.result(call, text, place) for place, (call, text) in enumerate(results)
    )
    return prompt.results_before + written + prompt.results_after


def render_result(call: TextCall, content: str, *, format: str) -> str:
    """One result, as the format gives it back."""
    return render_results([(call, content)], format=format)


def result_role(format: str) -> str:
    """The role under which results are given back."""
    return format_named(format).prompt.role
