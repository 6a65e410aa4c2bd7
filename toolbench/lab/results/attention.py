"""Items for the section Attention of the home page: runs, cells, providers and models with a problem."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.utils import timezone

from toolbench.lab.date_texts import render_day
from toolbench.lab.endpoints.setup_pages import ProviderRow
from toolbench.lab.models import Run
from toolbench.lab.results.run.index import RunRow
from toolbench.lab.sql import load_statement
from toolbench.lab.worker.health import HEARTBEAT_TIMEOUT

PROBE_AGE = timedelta(days=30)  # capabilities that were last probed longer ago may have changed
MAX_STALE_MODELS = 3


@dataclass(frozen=True, slots=True)
class AttentionItem:
    """Problem that the home page points out.

    Attributes:
        mark: outcome whose shape and colour the item has.
        text: the problem in one sentence.
        detail: further facts.
        page: URL name of the page about the problem.
        page_id: argument of that URL; None if the URL has none.
    """

    mark: str
    text: str
    detail: str
    page: str
    page_id: int | None = None


@dataclass(frozen=True, slots=True)
class StaleModel:
    """Model that is not retired and whose newest probe ended longer ago than `PROBE_AGE`."""

    id: int
    name: str
    provider: str
    probed_at: datetime


@dataclass(frozen=True, slots=True)
class SiteState:
    """State of workers, cells and models.

    Attributes:
        has_worker: whether a worker sent a heartbeat within `HEARTBEAT_TIMEOUT`.
        uncomputed_cells: number of cells that could not be computed.
        stale_models: models with old probes, the oldest first, at most `MAX_STALE_MODELS`.
    """

    has_worker: bool
    uncomputed_cells: int
    stale_models: tuple[StaleModel, ...]


def read_site_state() -> SiteState:
    """Return the state of workers, cells and models, with one query."""
    parameters = (HEARTBEAT_TIMEOUT.total_seconds(), timezone.now() - PROBE_AGE, MAX_STALE_MODELS)
    with connection.cursor() as cursor:
        cursor.execute(load_statement("results/site_problems"), parameters)
        has_worker, uncomputed_cells, models = cursor.fetchone()
    stale = (StaleModel(pk, name, provider, datetime.fromisoformat(at)) for pk, name, provider, at in models)
    return SiteState(has_worker, uncomputed_cells, tuple(stale))


def list_attention(
    runs: Sequence[RunRow], providers: Sequence[ProviderRow], state: SiteState
) -> tuple[AttentionItem, ...]:
    """Return an item for each problem of the runs, providers and site, without a query."""
    return (*_iter_runs(runs), *_iter_cells(state), *_iter_providers(providers), *_iter_stale_models(state))


def _iter_runs(runs: Sequence[RunRow]) -> Iterator[AttentionItem]:
    for row in runs:
        if row.run.state == Run.State.PAUSED:
            reason = row.run.stopped_reason or "Paused."
            detail = f"{row.tally.queued:,} of {row.tally.trial_count:,} trials are queued"
            yield AttentionItem("cancelled", f"Run {row.run.pk} is paused: {reason}", detail, "run", row.run.pk)
        if row.answered and row.answered.target_status == "below":
            text = f"Run {row.run.pk}: {row.answered.percent} % passed"
            detail = f"its interval lies below {row.answered.target:g} %"
            yield AttentionItem("fail", text, f"{row.run} · {detail}", "run", row.run.pk)
        elif row.answered is None and row.tools.answered and not row.tools.passed:
            text = f"Run {row.run.pk}: no trial with tools passed"
            detail = f"0 of {row.tools.answered:,} over all configurations: check the endpoint first"
            yield AttentionItem("fail", text, f"{row.run} · {detail}", "run", row.run.pk)
        if row.tally.infra:
            text = f"Run {row.run.pk}: {row.tally.infra:,} infrastructure error{'' if row.tally.infra == 1 else 's'}"
            yield AttentionItem("infra", text, f"{row.run} · these trials can be retried", "run", row.run.pk)


def _iter_cells(state: SiteState) -> Iterator[AttentionItem]:
    if count := state.uncomputed_cells:
        text = f"{count:,} cell{'' if count == 1 else 's'} could not be computed"
        yield AttentionItem("infra", text, "their sums of tokens, cost and times are unknown", "health")


def _iter_providers(providers: Sequence[ProviderRow]) -> Iterator[AttentionItem]:
    for row in providers:
        if row.state != "pass":
            yield AttentionItem(row.state, str(row.provider), row.state_text, "provider", row.provider.pk)


def _iter_stale_models(state: SiteState) -> Iterator[AttentionItem]:
    for model in state.stale_models:
        detail = f"{model.provider} · last probed on {render_day(model.probed_at)}"
        yield AttentionItem("na", f"{model.name}: capabilities may be outdated", detail, "model", model.id)
