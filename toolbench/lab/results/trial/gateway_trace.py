"""Page of a gateway trace: its steps and its conversation in the views of a trial."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from toolbench.lab.models import GatewayTrace, Step, Trial
from toolbench.lab.query_params import QueryParams
from toolbench.lab.results.trial.bodies.partial_bodies import MAX_BODY_BYTES, StoredBodies, select_facts
from toolbench.lab.results.trial.conversation.turns import TrialConversation, build_plain_conversation
from toolbench.lab.results.trial.page_query import CONVERSATION, STEPS, TrialPageQuery
from toolbench.lab.results.trial.step_details import StepView, build_step_view
from toolbench.lab.results.trial.timeline import TimelineTurn, build_timeline, find_open_row
from toolbench.lab.traces.gateway_steps import unpack_steps


@dataclass(frozen=True, slots=True)
class GatewayTraceView:
    """Steps of a gateway trace, with the attributes that the templates of the trial page read.

    `steps_truncated`, `can_be_compared`, `can_be_replayed` and `earlier` keep their defaults, since they apply only to
    trials.

    Attributes:
        trial: unsaved trial with the duration of the request, since the templates read a trial.
        timeline: the steps; empty if none are stored.
        step: the open step; None in the conversation and without steps.
        conversation: the conversation; None in the view of steps and without steps.
        lacks_bodies: whether there were earlier requests to the model, whose bodies are not stored.
    """

    trial: Trial
    timeline: tuple[TimelineTurn, ...]
    step: StepView | None
    conversation: TrialConversation | None
    lacks_bodies: bool
    steps_truncated: bool = False
    can_be_compared: bool = False
    can_be_replayed: bool = False
    earlier: tuple[()] = ()


def parse_trace_query(params: QueryParams) -> TrialPageQuery:
    """Parse URL parameters. Without `view=conversation`, the steps are shown."""
    query = TrialPageQuery.from_query(params)
    return query if query.view == CONVERSATION else replace(query, view=STEPS)


def build_gateway_trace_view(trace: GatewayTrace, query: TrialPageQuery) -> GatewayTraceView:
    """Return the view of a trace. Nothing is read from the database.

    Args:
        trace: the trace with its bodies.
        query: the view, and the row to open; a row that does not exist stands for the first response.
    """
    entries = unpack_steps(trace.steps)
    steps = [step for step, _ in entries]
    stored = {step.pk: StoredBodies(facts) for step, facts in entries}
    if steps:
        request, response = bytes(trace.upstream_request or b""), bytes(trace.upstream_response or b"")
        last = steps[-1].pk
        stored[last] = StoredBodies(stored[last].facts, request[:MAX_BODY_BYTES], response[:MAX_BODY_BYTES])
    timeline = build_timeline(steps, select_facts(stored))
    is_conversation = query.view == CONVERSATION
    return GatewayTraceView(
        trial=Trial(duration_ms=trace.duration_ms, outcome=Trial.Outcome.PASS, state=Trial.State.DONE),
        timeline=timeline,
        step=None if is_conversation else _build_open_step(steps, timeline, stored, query.step),
        conversation=build_plain_conversation(steps[-1:], stored) if steps and is_conversation else None,
        lacks_bodies=len(steps) > 1,
    )


def _build_open_step(
    steps: Sequence[Step], timeline: Sequence[TimelineTurn], stored: Mapping[int, StoredBodies], key: str
) -> StepView | None:
    row = find_open_row(timeline, key, "")
    if row is None:
        return None
    ordinal = int(row.key.split(".")[0])
    step = next(step for step in steps if step.ordinal == ordinal)
    bodies = stored[step.pk]
    return build_step_view(
        step, row.part, facts=bodies.facts or {}, tool_facts=(), bodies=(bodies.request, bodies.response)
    )
