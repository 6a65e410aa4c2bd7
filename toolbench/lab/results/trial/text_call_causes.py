"""Causes of a failed trial: the decisive one, and possible causes of calls that came as text.

The possible causes follow from the trial's answer and from the known capabilities of its model.
"""

import re
from dataclasses import dataclass

from toolbench.evals.causes.table import WireCause, load_causes, read_taxonomy_version
from toolbench.evals.causes.text_calls import TextCallCause
from toolbench.lab.endpoints.model_page import get_text_call_causes as list_model_causes
from toolbench.lab.models import Trial
from toolbench.lab.results.trial.page import TrialPage
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.traces.cause_columns import MAX_SIGNATURE_CHARS
from toolbench.providers.probing.format_detection import detect_format_without_tools

TEXT_CALL_CLASSES = ("text_instead_of_call", "call_in_tags", "no_tool_calls", "tools_dropped")
_TURN = re.compile(r" · turn (\d+)\Z")


@dataclass(frozen=True, slots=True)
class DecisiveCause:
    """Cause that decided the failure of a trial.

    Attributes:
        row: row of the table of causes.
        turn: number of the turn, from 1; empty if it is unknown.
        version: version of the table of causes by which the trial was classified.
        newest_version: current version of the table of causes.
        trials_query: query string that selects the failure group of the trial in its run.
    """

    row: WireCause
    turn: str
    version: int
    newest_version: int
    trials_query: str


def get_decisive_cause(trial: Trial) -> DecisiveCause | None:
    """Return the decisive cause; None if the trial has none or the table of causes does not contain it."""
    row = load_causes().get(trial.cause)
    if row is None:
        return None
    group_filter = TrialFilter(run=trial.run_id, cluster=trial.cause_signature, cause_version=trial.taxonomy)
    turn = _read_turn(trial.cause_signature)
    return DecisiveCause(row, turn, trial.taxonomy, read_taxonomy_version(), group_filter.query())


def _read_turn(signature: str) -> str:
    """Return the number at the end of a signature such as `… · turn 2`; "" without one or if it may be truncated."""
    turn = _TURN.search(signature)
    return turn[1] if turn and len(signature) < MAX_SIGNATURE_CHARS else ""


def get_text_call_causes(page: TrialPage) -> tuple[TextCallCause, ...]:
    """Return the possible causes of calls that came as text.

    The function sends at most seven queries.

    Returns:
        The causes; () for a trial whose failure class is not in TEXT_CALL_CLASSES, whose method is not native or whose
        model was deleted, and if every cause is ruled out.
    """
    model = page.config.model
    if page.trial.failure_class not in TEXT_CALL_CLASSES or page.config.method != "native" or model is None:
        return ()
    causes = list_model_causes(model, text_format=detect_format_without_tools(page.final_text))
    return causes if any(cause.likelihood != "ruled out" for cause in causes) else ()
