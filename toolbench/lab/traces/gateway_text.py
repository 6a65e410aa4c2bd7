"""Search texts of gateway traces: names, question, answer, calls with their arguments, and the error."""

from collections.abc import Iterator, Sequence

from toolbench.engine.types import Message
from toolbench.lab.models import GatewayTrace
from toolbench.lab.traces.chat_requests import parse_chat_answer, parse_chat_request, parse_traffic_line
from toolbench.lab.traces.step_facts import to_column_text
from toolbench.lab.traces.trial_text import (
    MAX_ANSWER_CHARS,
    MAX_QUESTION_CHARS,
    MAX_REASON_CHARS,
    MAX_TEXT_CHARS,
)

MAX_ARGUMENT_CHARS = 400  # characters of the arguments of one call
_TRACES_PER_READ = 20  # traces that one query reads; each has up to 3 MB of bodies
_COLUMNS = ("alias", "served_by", "model_name", "dialect", "token_name", "status", "code", "sentence", "changes")
_BODY_COLUMNS = ("client_request", "client_response", "traffic_line")


def build_trace_texts(trace_ids: Sequence[int]) -> dict[int, str]:
    """Return the search texts of traces by id, with one query for every _TRACES_PER_READ traces."""
    texts: dict[int, str] = {}
    for start in range(0, len(trace_ids), _TRACES_PER_READ):
        batch_ids = trace_ids[start : start + _TRACES_PER_READ]
        for trace in GatewayTrace.objects.filter(pk__in=batch_ids).only(*_COLUMNS, *_BODY_COLUMNS):
            texts[trace.pk] = build_trace_text(trace)
    return texts


def build_trace_text(trace: GatewayTrace) -> str:
    """Return the search text of a trace: one part per line, at most MAX_TEXT_CHARS characters.

    The text of a trace without bodies has only the names and the error.
    """
    served_by = trace.served_by if trace.served_by != trace.alias else ""
    names = (trace.alias, served_by, trace.model_name, trace.dialect, trace.token_name, str(trace.status), trace.code)
    question, answer = _read_exchange(trace)
    parts = [
        " ".join(name for name in (*names, *map(str, trace.changes)) if name),
        question[:MAX_QUESTION_CHARS],
        " ".join(message["content"] for message in answer)[:MAX_ANSWER_CHARS],
        trace.sentence[:MAX_REASON_CHARS],
        *_iter_calls(answer),
    ]
    return to_column_text("\n".join(part for part in parts if part.strip()), MAX_TEXT_CHARS)


def _read_exchange(trace: GatewayTrace) -> tuple[str, tuple[Message, ...]]:
    """Return the last user message or prompt, and the messages of the answer; "" and () if they were not kept."""
    if trace.traffic_line is not None:
        request, answer = parse_traffic_line(bytes(trace.traffic_line))
    else:
        request = parse_chat_request(bytes(trace.client_request or b""))
        answer = parse_chat_answer(bytes(trace.client_response or b""))
    questions = (message["content"] for message in reversed(request.messages) if message["role"] in ("user", "prompt"))
    return next(questions, ""), answer


def _iter_calls(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        for call in message.get("tool_calls", ()):
            yield f"{call['function']['name']} {call['function']['arguments'][:MAX_ARGUMENT_CHARS]}"
