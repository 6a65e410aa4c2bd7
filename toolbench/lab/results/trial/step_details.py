"""Open step of the trial page: two panes, the changes by transforms, and the problems that were found."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.template.defaultfilters import pluralize

from toolbench.engine.types import Finding, JsonObject, ParseError, TransformChange
from toolbench.lab.models import Step
from toolbench.lab.traces.code_view import CodeView, mark_bad_paths, mark_differences, render_body, render_value
from toolbench.lab.traces.step_facts import build_stored


@dataclass(frozen=True, slots=True)
class Pane:
    """One of the two panes, such as the raw request."""

    title: str
    note: str
    code: CodeView


@dataclass(frozen=True, slots=True)
class StepProblem:
    """Schema error, parse error or finding, with its JSON path."""

    title: str
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class StepView:
    """Content of the open step.

    Attributes:
        key: `<ordinal>.<part>`.
        part: request, response, transforms or calls of an exchange; dispatch or result of a tool execution.
        changes: changes that transforms made in this part.
        problems: problems that were found in this part.
        headers: headers that no pane shows.
        error: error message of the step; empty without one, and in parts that do not show it.
        notice: code of a notice, such as `tool_not_executed`; empty without one, and in parts that do not show it.
    """

    key: str
    part: str
    title: str
    step: Step
    left: Pane
    right: Pane
    changes: tuple[TransformChange, ...]
    problems: tuple[StepProblem, ...]
    headers: tuple[tuple[str, str], ...]
    error: str
    notice: str

    @property
    def is_stored(self) -> bool:
        """Return whether the step belongs to a trial. Bodies of other steps have no pages of their own."""
        return self.step.trial_id is not None

    @property
    def has_curl(self) -> bool:
        """Return whether the step's request can be shown as a curl command."""
        return self.part == "request" and bool(self.step.url) and self.is_stored

    @property
    def side(self) -> str:
        """Return which stored body of the step contains this part: "request" or "response"."""
        return "request" if self.part in ("request", "dispatch") else "response"


def build_step_view(
    step: Step, part: str, *, facts: JsonObject, tool_facts: Sequence[JsonObject], bodies: tuple[bytes, bytes]
) -> StepView:
    """Return the view of one part of a step.

    Args:
        step: the step.
        part: name of the part, as in `TimelineRow.part`.
        facts: step details of the step.
        tool_facts: step details of the turn's tool executions. The part `calls` shows their schema errors too.
        bodies: request and response, which may be truncated.
    """
    left, right = _build_panes(step, part, facts=facts, bodies=bodies)
    return StepView(
        key=f"{step.ordinal}.{part}",
        part=part,
        title=f"Turn {step.turn + 1}, {_describe_part(step, part)}",
        step=step,
        left=left,
        right=right,
        changes=tuple(build_stored(TransformChange, change) for change in facts.get(_find_changes_key(step, part), ())),
        problems=_list_problems(part, facts, tool_facts),
        headers=_list_headers(part, facts, bodies[0]),
        error=step.error_message if part in ("response", "result", "dispatch") else "",
        notice=facts.get("notice", "") if part in ("response", "calls") else "",
    )


def _describe_part(step: Step, part: str) -> str:
    names = {
        "request": "request",
        "response": "raw response",
        "transforms": "after transforms",
        "calls": "parsed calls",
        "dispatch": f"dispatch of {step.tool_name}",
        "result": f"result of {step.tool_name}",
    }
    return names[part] + (f", attempt {step.attempt}" if step.attempt > 1 else "")


def _find_changes_key(step: Step, part: str) -> str:
    """Return the key under which step details list the changes of this part; "" if the part has no changes."""
    if step.kind == Step.Kind.TOOL:
        return "changes" if part == "result" else ""
    return "request_changes" if part == "request" else "response_changes"


def _build_panes(step: Step, part: str, *, facts: JsonObject, bodies: tuple[bytes, bytes]) -> tuple[Pane, Pane]:
    if part == "request":
        sent = Pane("Raw, as sent", f"{step.request_bytes:,} bytes", render_body(bodies[0], size=step.request_bytes))
        headers = facts.get("request_headers", {})
        if prompt := _find_prompt(bodies[0]):
            return sent, Pane(
                "Prompt, as the model reads it", f"{len(prompt):,} characters", render_body(prompt.encode())
            )
        return sent, Pane("Headers", "secrets are masked", render_value(headers))
    if part == "dispatch":
        return _build_dispatch_panes(facts, bodies[0])
    if part == "result":
        size = max(step.response_bytes, len(bodies[1]))
        returned = Pane("Raw, as given back to the model", f"{size:,} bytes", render_body(bodies[1], size=size))
        return returned, Pane("Before result transforms", "the envelope", render_value(facts.get("envelope", {})))
    if part == "calls":
        raw, normalised = mark_differences(
            render_value(facts.get("calls_found", [])), render_value(facts.get("calls", []))
        )
        return Pane("Raw, as found in the answer", "", raw), Pane("Normalised, as dispatched", "", normalised)
    return _build_answer_panes(step, facts, bodies[1])


def _build_dispatch_panes(facts: JsonObject, arguments: bytes) -> tuple[Pane, Pane]:
    paths = [error["path"] for error in facts.get("schema_errors", ())]
    raw = Pane("Raw, as the model wrote the arguments", f"{len(arguments):,} bytes", render_body(arguments))
    parsed = mark_bad_paths(render_value(facts.get("arguments")), paths)
    return raw, Pane("Normalised, as checked against the schema", facts.get("parse_status", ""), parsed)


def _build_answer_panes(step: Step, facts: JsonObject, body: bytes) -> tuple[Pane, Pane]:
    raw = Pane(
        "Raw, as received", _describe_response(step, facts), render_body(body, size=max(step.response_bytes, len(body)))
    )
    if facts.get("partial"):
        return raw, Pane("Incomplete answer, nothing executed", "", render_value(facts["partial"]))
    if "message" not in facts:
        return raw, Pane("Error, as classified", "", render_value(facts.get("error")))
    return raw, Pane("Normalised, as the loop read it", "", render_value(facts["message"]))


def _describe_response(step: Step, facts: JsonObject) -> str:
    """Return status and size of a response in words.

    A step with a body but without a status was imported from a log of another program.
    """
    if not step.status:
        return f"from the log, {step.response_bytes:,} bytes" if step.response_bytes else "no answer"
    count = len(facts.get("chunks") or ()) if facts.get("stream") else 0
    chunks = f" in {count:,} chunk{pluralize(count)}" if count else ""
    return f"HTTP {step.status}, {step.response_bytes:,} bytes{chunks}"


def _list_problems(part: str, facts: JsonObject, tool_facts: Sequence[JsonObject]) -> tuple[StepProblem, ...]:
    checked = [facts] if part in ("dispatch", "result") else list(tool_facts) if part == "calls" else []
    schema_problems = [
        StepProblem(f"Schema error ({error['kind']})", error["path"], error["message"])
        for details in checked
        for error in details.get("schema_errors", ())
    ]
    stored_findings = facts.get("findings", ()) if part in ("response", "calls", "transforms") else ()
    findings = [build_stored(Finding, finding) for finding in stored_findings]
    parse_errors = facts.get("parse_errors", ()) if part == "calls" else ()
    return (
        *schema_problems,
        *(_build_parse_problem(build_stored(ParseError, error)) for error in parse_errors),
        *(StepProblem(finding.code, finding.path, finding.message) for finding in findings),
    )


def _build_parse_problem(error: ParseError) -> StepProblem:
    path = "$.content" if error.call is None else f"$.tool_calls[{error.call}].function.arguments"
    repairs = f" Repaired by {', '.join(error.repairs)}." if error.repairs and not error.truncated else ""
    return StepProblem(f"Parse error ({error.mode})", path, f"{error.error}: {error.snippet}{repairs}")


def _list_headers(part: str, facts: JsonObject, body: bytes) -> tuple[tuple[str, str], ...]:
    """Return the headers that no pane shows.

    They are the headers of a response, and those of a request whose second pane shows its prompt.
    """
    is_listed = part == "response" or (part == "request" and _find_prompt(body))
    headers = facts.get(f"{part}_headers", {}) if is_listed else {}
    return tuple((str(name), str(value)) for name, value in headers.items())


def _find_prompt(body: bytes) -> str:
    """Return the rendered prompt of a request; "" if the request has messages or is truncated."""
    if b'"prompt"' not in body:
        return ""
    try:
        prompt = json.loads(body).get("prompt")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return prompt.encode("utf-8", "replace").decode() if isinstance(prompt, str) else ""
