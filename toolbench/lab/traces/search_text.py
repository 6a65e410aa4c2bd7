"""Search texts of trials, written in batches after the trials have ended.

Storing a trial only marks its search text as stale; the sweep writes the text. Until then a search does not find the
trial; `get_text_lag` returns how long the oldest such trial has waited.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import Min
from django.utils import timezone

from toolbench.engine.strict_json import get_object
from toolbench.lab.models import Trial
from toolbench.lab.sql import load_statement
from toolbench.lab.traces.removed_bodies import WITH_BODIES
from toolbench.lab.traces.step_facts import to_column_text

TRIALS_PER_BATCH = 200
MAX_TRIALS_PER_SWEEP = 4_000  # whole batches
MAX_TEXT_CHARS = 4_000
MAX_QUESTION_CHARS = 1_000
MAX_ANSWER_CHARS = 1_000
MAX_REASON_CHARS = 800
MAX_ARGUMENT_BYTES = 400  # of one call

_SELECT_STEPS = load_statement("traces/searched_steps")
_STORE_TEXTS = load_statement("traces/store_texts")
_STALE = Trial.objects.filter(WITH_BODIES, text_stale=True, state=Trial.State.DONE)


def update_search_texts(limit: int = MAX_TRIALS_PER_SWEEP) -> int:
    """Write the stale search texts of finished trials, in the order in which they finished.

    Args:
        limit: number of trials after which no further batch of TRIALS_PER_BATCH is started.

    Returns:
        How many texts were written.
    """
    written = 0
    while written < limit:
        batch_size = _update_batch()
        written += batch_size
        if batch_size < TRIALS_PER_BATCH:
            break
    return written


def get_text_lag() -> float:
    """Return the seconds since the end of the trial that has waited longest for its search text; 0.0 if none waits."""
    oldest = _STALE.aggregate(oldest=Min("finished_at"))["oldest"]
    return max(0.0, (timezone.now() - oldest).total_seconds()) if oldest else 0.0


def _update_batch() -> int:
    """Write the search texts of one batch and return its size. Trials that another process has locked are skipped."""
    with transaction.atomic(), connection.cursor() as cursor:
        stale = _STALE.select_related("config").order_by("finished_at", "pk")
        columns = ("scenario", "cause", "sentence", "error_hint", "final_text")
        config_columns = ("config__model_name", "config__provider_name")
        trials = list(
            stale.only(*columns, *config_columns).select_for_update(skip_locked=True, of=("self",))[:TRIALS_PER_BATCH]
        )
        trial_ids = [trial.pk for trial in trials]
        cursor.execute(_SELECT_STEPS, {"ids": trial_ids, "argument_bytes": MAX_ARGUMENT_BYTES})
        steps: dict[int, list[tuple[str, bytes]]] = defaultdict(list)
        for trial_id, tool_name, body in cursor.fetchall():
            steps[trial_id].append((tool_name, bytes(body)))
        cursor.execute(_STORE_TEXTS, [trial_ids, [build_search_text(trial, steps[trial.pk]) for trial in trials]])
        Trial.objects.filter(pk__in=trial_ids).update(text_stale=False)
    return len(trial_ids)


def build_search_text(trial: Trial, steps: Sequence[tuple[str, bytes]]) -> str:
    """Return the search text of a trial: one part per line, at most MAX_TEXT_CHARS characters.

    Args:
        trial: a finished trial with its configuration.
        steps: tool name and arguments of each call, and ("", body) for the first request.
    """
    config = trial.config
    question = next((_find_question(body) for tool, body in steps if not tool), "")
    parts = [
        f"{config.model_name} {config.provider_name} {trial.scenario} {trial.cause}",
        question[:MAX_QUESTION_CHARS],
        bytes(trial.final_text[: 4 * MAX_ANSWER_CHARS]).decode("utf-8", "replace")[:MAX_ANSWER_CHARS],
        f"{trial.sentence} {trial.error_hint}"[:MAX_REASON_CHARS],
        *(f"{tool} {body.decode('utf-8', 'replace')}" for tool, body in steps if tool),
    ]
    return to_column_text("\n".join(part for part in parts if part.strip()), MAX_TEXT_CHARS)


def _find_question(body: bytes) -> str:
    """Return the last user message in a request, or the end of its prompt; "" if there is neither."""
    try:
        request = get_object(json.loads(body))
    except (ValueError, RecursionError):
        return ""
    messages = request.get("messages")
    if not isinstance(messages, list):
        return str(request.get("prompt") or "")[-MAX_QUESTION_CHARS:]
    newest_first = map(get_object, reversed(messages))
    return next((_join_text(message.get("content")) for message in newest_first if message.get("role") == "user"), "")


def _join_text(content: Any) -> str:
    """Return the text of a message's content, which is a string or a list of parts; "" for other content."""
    if isinstance(content, str):
        return content
    parts: Iterable[Any] = content if isinstance(content, list) else ()
    return " ".join(str(get_object(part).get("text") or "") for part in parts)
