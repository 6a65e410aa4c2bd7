"""The decisive cause of a failed trial, and the reasons why its calls came as text.

The reasons follow from the trial's answer and from the known capabilities of its model.
"""

from dataclasses import dataclass

from toolbench.evals.causes.table import WireCause, load_causes, read_taxonomy_version
from toolbench.evals.causes.text_calls import TextCallCause
from toolbench.lab.endpoints.model_page import get_text_call_causes as list_model_causes
from toolbench.lab.models import Trial
from toolbench.lab.results.trial.page import Trace
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.providers.probing.format_detection import detect_format_without_tools

TEXT_CALL_CLASSES = ("text_instead_of_call", "call_in_tags", "no_tool_calls", "tools_dropped")


@dataclass(frozen=True, slots=True)
class DecisiveCause:
    """The cause that decided a trial's failure.

    Attributes:
        turn: turn number from 1, as text; empty if not known.
        version: version of the table of causes that classified the trial.
        newest: current version of the table.
        trials_query: query string that selects the run's failures with the same cause.
    """

    row: WireCause
    turn: str
    version: int
    newest: int
    trials_query: str


def get_decisive_cause(trial: Trial) -> DecisiveCause | None:
    """Return the decisive cause; None for a trial that did not fail or whose cause the table does not contain."""
    row = load_causes().get(trial.cause)
    if row is None:
        return None
    turn = trial.cause_signature.rpartition(" · turn ")[2] if trial.cause_signature else ""
    alike = TrialFilter(run=trial.run_id, cluster=trial.cause_signature, cause_version=trial.taxonomy)
    return DecisiveCause(row, turn, trial.taxonomy, read_taxonomy_version(), alike.query())


def get_text_call_causes(trace: Trace) -> tuple[TextCallCause, ...]:
    """Return why the calls came as text, with at most three queries.

    Returns:
        Empty for a trial that failed in another way, used another method than native or whose model was deleted.
    """
    model = trace.config.model
    if trace.trial.failure_class not in TEXT_CALL_CLASSES or trace.config.method != "native" or model is None:
        return ()
    return list_model_causes(model, dialect=detect_format_without_tools(trace.final_text))
