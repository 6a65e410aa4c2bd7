"""The open step of a trial: two views side by side, the changes between them and the problems found."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.engine.types import JsonObject, TransformChange
from toolbench.lab.models import Step
from toolbench.lab.traces.code_view import CodeView, mark_bad_paths, mark_differences, render_body, render_value


@dataclass(frozen=True, slots=True)
class Pane:
    """One of the two views."""

    title: str
    note: str
    code: CodeView


@dataclass(frozen=True, slots=True)
class StepProblem:
    """A schema error, parse error or finding at a JSON path."""

    title: str
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class StepView:
    """Everything that is shown of the open step."""

    key: str
    part: str
    title: str
    step: Step
    left: Pane
    right: Pane
    changes: tuple[TransformChange, ...]
    faults: tuple[StepProblem, ...]
    headers: tuple[tuple[str, str], ...]
    error: str
    notice: str  # "Tool not executed: …", "" for nothing

    @property
    def has_curl(self) -> bool:
        """Return whether the step's request can be shown as a curl command."""
        return self.part == "request" and bool(self.step.url)

    @property
    def side(self) -> str:
        """Return which of the step's two bodies this part was read from."""
        return "request" if self.part in ("request", "dispatch") else "response"


def build_step_view(
    step: Step, part: str, *, facts: JsonObject, beside: Sequence[JsonObject], bodies: tuple[bytes, bytes]
) -> StepView:
    """Return the view of one part of a step.

    Args:
        step: the step.
        part: name of the part, as in `TimelineRow.key`.
        facts: step details of the step.
        beside: step details of the turn's tool executions, whose schema errors belong to the parsed calls too.
        bodies: request and response, possibly truncated.
    """
    left, right = _build_panes(step, part, facts=facts, bodies=bodies)
    faults = _list_problems(part, facts, beside)
    return StepView(
        key=f"{step.ordinal}.{part}",
        part=part,
        title=f"Turn {step.turn + 1}, {_describe_part(step, part)}",
        step=step,
        left=left,
        right=right,
        changes=tuple(TransformChange(**change) for change in facts.get(_find_changes_key(step, part), ())),
        faults=faults,
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
        given = Pane("Raw, as given back to the model", f"{len(bodies[1]):,} bytes", render_body(bodies[1]))
        return given, Pane("Before result transforms", "the envelope", render_value(facts.get("envelope", {})))
    if part == "calls":
        found, kept = render_value(facts.get("calls_found", [])), render_value(facts.get("calls", []))
        found, kept = mark_differences(found, kept)
        return Pane("Raw, as found in the answer", "", found), Pane("Normalised, as dispatched", "", kept)
    return _build_answer_panes(step, facts, bodies[1])


def _build_dispatch_panes(facts: JsonObject, written: bytes) -> tuple[Pane, Pane]:
    paths = [error["path"] for error in facts.get("schema_errors", ())]
    raw = Pane("Raw, as the model wrote the arguments", f"{len(written):,} bytes", render_body(written))
    parsed = mark_bad_paths(render_value(facts.get("arguments")), paths)
    return raw, Pane("Normalised, as checked against the schema", facts.get("parse_status", ""), parsed)


def _build_answer_panes(step: Step, facts: JsonObject, body: bytes) -> tuple[Pane, Pane]:
    raw = Pane(
        "Raw, as received", _describe_response(step, facts), render_body(body, size=max(step.response_bytes, len(body)))
    )
    if facts.get("partial"):
        return raw, Pane("As far as it came, nothing executed", "", render_value(facts["partial"]))
    if "message" not in facts:
        return raw, Pane("Classified", "", render_value(facts.get("error")))
    return raw, Pane("Normalised, as the loop read it", "", render_value(facts["message"]))


def _describe_response(step: Step, facts: JsonObject) -> str:
    """Return status and size. A body without a status comes from a log of another program."""
    if not step.status:
        return f"as the log tells it, {step.response_bytes:,} bytes" if step.response_bytes else "no answer"
    chunks = f" in {len(facts['chunks']):,} chunks" if facts.get("stream") and facts.get("chunks") else ""
    return f"HTTP {step.status}, {step.response_bytes:,} bytes{chunks}"


def _list_problems(part: str, facts: JsonObject, beside: Sequence[JsonObject]) -> tuple[StepProblem, ...]:
    owners = [facts] if part in ("dispatch", "result") else list(beside) if part == "calls" else []
    schema = [
        StepProblem(f"Schema error ({error['kind']})", error["path"], error["message"])
        for owner in owners
        for error in owner.get("schema_errors", ())
    ]
    found = facts.get("findings", ()) if part in ("response", "calls", "transforms") else ()
    unread = facts.get("parse_errors", ()) if part == "calls" else ()
    return (
        *schema,
        *map(_build_parse_problem, unread),
        *(StepProblem(finding["code"], finding["path"], finding["message"]) for finding in found),
    )


def _build_parse_problem(error: JsonObject) -> StepProblem:
    path = "$.content" if error["call"] is None else f"$.tool_calls[{error['call']}].function.arguments"
    mended = f" Repaired by {', '.join(error['repairs'])}." if error["repairs"] and not error["truncated"] else ""
    return StepProblem(f"Parse error ({error['mode']})", path, f"{error['error']}: {error['snippet']}{mended}")


def _list_headers(part: str, facts: JsonObject, body: bytes) -> tuple[tuple[str, str], ...]:
    """Return the headers of a response, and of a request whose prompt is shown in place of its headers."""
    shown = part == "response" or (part == "request" and _find_prompt(body))
    headers = facts.get(f"{part}_headers", {}) if shown else {}
    return tuple((str(name), str(value)) for name, value in headers.items())


def _find_prompt(body: bytes) -> str:
    """Return the rendered prompt of a request; empty for a request of messages or a truncated one."""
    if b'"prompt"' not in body:
        return ""
    try:
        prompt = json.loads(body).get("prompt")
    except (ValueError, AttributeError):
        return ""
    return prompt.encode("utf-8", "replace").decode() if isinstance(prompt, str) else ""
