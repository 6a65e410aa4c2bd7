"""What needs a look on the home page: failing and paused runs, set-aside cells, providers, outdated probes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Max
from django.utils import timezone

from toolbench.lab.endpoints.setup_pages import ProviderRow
from toolbench.lab.models import Cell, Model, Run
from toolbench.lab.results.run.index import RunRow

PROBE_AGE = timedelta(days=30)  # what a probe found may have changed by then
MAX_STALE_MODELS = 3


@dataclass(frozen=True, slots=True)
class AttentionItem:
    """Something that needs a look.

    Attributes:
        mark: an outcome mark.
        page: name of the page that shows it.
        page_id: id of what the page shows; None if the page needs none.
    """

    mark: str
    text: str
    detail: str
    page: str
    page_id: int | None = None


def list_attention(runs: Sequence[RunRow], providers: Sequence[ProviderRow]) -> tuple[AttentionItem, ...]:
    """Return what needs a look among these runs, these providers and everything else, with two queries."""
    return (*_iter_runs(runs), *_iter_cells(), *_iter_providers(providers), *_iter_stale_models())


def _iter_runs(runs: Sequence[RunRow]) -> Iterator[AttentionItem]:
    for row in runs:
        if row.run.state == Run.State.PAUSED:
            reason = row.run.stopped_reason or "Paused."
            waiting = f"{row.tally.queued:,} of {row.tally.total:,} trials wait"
            yield AttentionItem("cancelled", f"Run {row.run.pk} is paused: {reason}", waiting, "run", row.run.pk)
        if row.answered and row.answered.target_status == "below":
            percent = f"Run {row.run.pk}: {row.answered.percent} % passed"
            below = f"its interval lies below {row.answered.target:g} %"
            yield AttentionItem("fail", percent, f"{row.run} · {below}", "run", row.run.pk)
        if row.tally.infra:
            errors = f"Run {row.run.pk}: {row.tally.infra:,} infrastructure error{'' if row.tally.infra == 1 else 's'}"
            yield AttentionItem("infra", errors, f"{row.run} · they can be retried", "run", row.run.pk)


def _iter_cells() -> Iterator[AttentionItem]:
    count = Cell.objects.exclude(compute_error="").filter(run__deleted_at=None).count()
    if count:
        text = f"{count:,} cell{'' if count == 1 else 's'} could not be computed"
        yield AttentionItem("infra", text, "their sums of tokens, cost and times are unknown", "health")


def _iter_providers(providers: Sequence[ProviderRow]) -> Iterator[AttentionItem]:
    for row in providers:
        if row.state != "pass":
            yield AttentionItem(row.state, str(row.provider), row.state_text, "provider", row.provider.pk)


def _iter_stale_models() -> Iterator[AttentionItem]:
    """Yield models whose newest probe is old; the oldest first."""
    probed = Model.objects.filter(retired=False).annotate(probed=Max("probes__finished_at"))
    stale = probed.filter(probed__lt=timezone.now() - PROBE_AGE).select_related("provider").order_by("probed")
    for model in stale[:MAX_STALE_MODELS]:
        assert model.probed is not None
        detail = f"{model.provider} · last probed on {model.probed:%d %b %Y}"
        yield AttentionItem("na", f"{model.name}: capabilities may be outdated", detail, "model", model.pk)
