"""Why a trial's calls came as text, in four causes, from its own answer and from what is known of its model."""

from toolbench.evals.causes.calls_as_text import Cause
from toolbench.lab.probes.capabilities import effective_of
from toolbench.lab.probes.model_page import get_causes
from toolbench.lab.traces.trace import Trace
from toolbench.providers.probing.dialects import dialect_in

AS_TEXT = ("text_instead_of_call", "call_in_tags", "no_tool_calls", "tools_dropped")


def get_trial_causes(trace: Trace) -> tuple[Cause, ...]:
    """() for a trial that failed in another way, or whose model is gone. At most five queries."""
    model = trace.config.model
    if trace.trial.failure_class not in AS_TEXT or trace.config.method != "native" or model is None:
        return ()
    return get_causes(model, effective_of(model), dialect=dialect_in(trace.final_text))
