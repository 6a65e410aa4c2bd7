"""What the first page shows, in its order: what can be connected, the local run, the published matrix, failures worth
opening, one's own runs."""

from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from toolbench.lab.local_run import INTENT_PURPOSE, PURPOSE, LocalBox, get_local_box
from toolbench.lab.models import Process, Provider, Run, Trial
from toolbench.lab.published import Published, get_published

LOOK_BACK = 400  # failed trials, newest first, among which three of different classes are looked for
WORTH = 3
RECENT = 5
BEAT = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class WorthOpening:
    trial_id: int
    sentence: str
    failure_class: str
    model: str
    scenario: str


@dataclass(frozen=True, slots=True)
class FirstPage:
    """`working` is False when no worker has beaten for a minute: then trials only wait."""

    providers: tuple[Provider, ...]
    local: LocalBox
    published: Published | None
    failures: tuple[WorthOpening, ...]
    recent: tuple[Run, ...]
    working: bool


def get_first_page() -> FirstPage:
    """A fixed number of queries: none of them grows with the number of trials."""
    mine = Run.objects.filter(simulated=False, deleted_at=None).exclude(purpose__in=[PURPOSE, INTENT_PURPOSE])
    return FirstPage(
        providers=tuple(Provider.objects.exclude(kind=Provider.Kind.SIMULATED)),
        local=get_local_box(),
        published=get_published(),
        failures=_failures(),
        recent=tuple(mine[:RECENT]),
        working=Process.objects.filter(kind="worker", seen_at__gt=timezone.now() - BEAT).exists(),
    )


def _failures() -> tuple[WorthOpening, ...]:
    failed = Trial.objects.filter(outcome=Trial.Outcome.FAIL, run__simulated=False, run__deleted_at=None)
    failed = failed.filter(cell__control=False)
    newest = failed.order_by("-pk").values_list("pk", "sentence", "failure_class", "config__model_name", "scenario")
    worth: dict[str, WorthOpening] = {}
    for row in newest[:LOOK_BACK]:
        found = WorthOpening(*row)
        worth.setdefault(found.failure_class, found)
    return tuple(worth.values())[:WORTH]
