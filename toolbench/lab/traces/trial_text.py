"""Search texts of trials: names of the trial and its tools, question, final answer, reasons, and arguments of calls."""

from collections import defaultdict
from collections.abc import Sequence

from django.db import connection

from toolbench.lab.models import Trial
from toolbench.lab.sql import load_statement
from toolbench.lab.traces.chat_requests import parse_chat_request
from toolbench.lab.traces.step_facts import to_column_text

MAX_TEXT_CHARS = 4_000
MAX_QUESTION_CHARS = 1_000
MAX_ANSWER_CHARS = 1_000
MAX_REASON_CHARS = 800
MAX_ARGUMENT_BYTES = 400  # bytes of the arguments of one call

_SELECT_STEPS = load_statement("traces/searched_steps")
_COLUMNS = ("scenario", "cause", "sentence", "error_hint", "final_text")
_CONFIG_COLUMNS = ("config__model_name", "config__provider_name")


def build_trial_texts(trial_ids: Sequence[int]) -> dict[int, str]:
    """Return the search texts of trials by id, with two queries."""
    steps: dict[int, list[tuple[str, bytes]]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_SELECT_STEPS, {"ids": list(trial_ids), "argument_bytes": MAX_ARGUMENT_BYTES})
        for trial_id, tool_name, body in cursor.fetchall():
            steps[trial_id].append((tool_name, bytes(body)))
    trials = Trial.objects.filter(pk__in=trial_ids).select_related("config").only(*_COLUMNS, *_CONFIG_COLUMNS)
    return {trial.pk: build_search_text(trial, steps[trial.pk]) for trial in trials}


def build_search_text(trial: Trial, steps: Sequence[tuple[str, bytes]]) -> str:
    """Return the search text of a trial: one part per line, at most MAX_TEXT_CHARS characters.

    The first line has the names of all called tools, since the lines of calls may be truncated.

    Args:
        trial: a finished trial with its configuration.
        steps: tool name and arguments of each call, and ("", body) for the first request; the bytes are empty after the
            bodies were removed.
    """
    config = trial.config
    tool_names = dict.fromkeys(tool for tool, _ in steps if tool)
    question = next((_find_question(body) for tool, body in steps if not tool), "")
    parts = [
        " ".join((config.model_name, config.provider_name, trial.scenario, trial.cause, *tool_names)),
        question[:MAX_QUESTION_CHARS],
        bytes(trial.final_text[: 4 * MAX_ANSWER_CHARS]).decode("utf-8", "replace")[:MAX_ANSWER_CHARS],
        f"{trial.sentence} {trial.error_hint}"[:MAX_REASON_CHARS],
        *(f"{tool} {body.decode('utf-8', 'replace')}" for tool, body in steps if tool and body),
    ]
    return to_column_text("\n".join(part for part in parts if part.strip()), MAX_TEXT_CHARS)


def _find_question(body: bytes) -> str:
    """Return the last user message in a request, else the end of its prompt; "" if there is neither."""
    messages = parse_chat_request(body).messages
    texts = {message["role"]: str(message["content"]) for message in messages}
    return texts.get("user") or texts.get("prompt", "")[-MAX_QUESTION_CHARS:]
