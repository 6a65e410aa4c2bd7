"""Rate control of a provider: the check of its settings, and the data of its page."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from toolbench.lab.models import PacePoint, Provider, ProviderPace
from toolbench.lab.worker.pacing.controller import compute_rate
from toolbench.lab.worker.pacing.shared_state import read_settings
from toolbench.lab.worker.pacing.state import PaceState

MAX_PER_MINUTE = 1_000_000_000  # requests or tokens
MAX_POINTS = 360  # points of the chart: each covers at least 10 s, so 360 cover at least an hour of requests
CHART_HOURS = 24


@dataclass(frozen=True, slots=True)
class RateControlPage:
    """The rate control of a provider.

    Attributes:
        points: the newest points of the last `CHART_HOURS`, at most `MAX_POINTS`, oldest first.
        limit: current concurrency limit; None if no worker has used the provider with rate control yet.
        requests_per_minute: current limit of requests per minute, rounded; None for no limit.
        held_until: no request is sent before this time; None if requests may be sent.
    """

    points: tuple[PacePoint, ...]
    limit: int | None
    requests_per_minute: int | None
    held_until: datetime | None

    @property
    def answers(self) -> int:
        """Number of answers in all points; rejections are not counted."""
        return sum(point.answers for point in self.points)

    @property
    def rejections(self) -> int:
        """Number of rejections in all points."""
        return sum(point.rejections for point in self.points)

    @property
    def rejected_percent(self) -> float:
        """Rejections as a percentage of answers and rejections together; 0 if there are neither."""
        return 100 * self.rejections / max(1, self.answers + self.rejections)


def get_rate_control(provider: Provider) -> RateControlPage | None:
    """Return the rate control of a provider with two queries; None if it has no rate control."""
    settings = read_settings(provider)
    if not settings.is_active:
        return None
    since = timezone.now() - timedelta(hours=CHART_HOURS)
    newest = PacePoint.objects.filter(provider=provider, at__gt=since).order_by("-at")[:MAX_POINTS]
    pace = ProviderPace.objects.filter(provider=provider).first()
    rate = compute_rate(PaceState.from_json(pace.state) if pace else PaceState(), settings)
    return RateControlPage(
        points=tuple(newest)[::-1],
        limit=pace.concurrency if pace else None,
        requests_per_minute=None if rate is None else round(rate),
        held_until=pace.held_until if pace and pace.held_until > timezone.now() else None,
    )


def list_rate_errors(requests_per_minute: int | None, tokens_per_minute: int | None) -> Iterator[tuple[str, str]]:
    """Yield the name of each limit with its error; the error is "" if the limit is valid."""
    for name, limit in (("requests_per_minute", requests_per_minute), ("tokens_per_minute", tokens_per_minute)):
        is_valid = limit is None or 1 <= limit <= MAX_PER_MINUTE
        yield name, "" if is_valid else f"Enter 1 to {MAX_PER_MINUTE:,}, or leave the field empty for no limit."
