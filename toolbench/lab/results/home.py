"""What the first page shows, in its order: what can be connected, the published matrix, failures worth opening,
one's own runs. The local run in between is `local_run`'s."""

from dataclasses import dataclass

from toolbench.lab.endpoints.connect import DetectedKey, detected_keys, templates
from toolbench.lab.endpoints.local_servers import LocalServer, get_local_servers, local_kinds
from toolbench.lab.endpoints.setup_pages import ProviderLine, get_providers
from toolbench.lab.models import Run, Trial
from toolbench.lab.results.published import Published, get_published
from toolbench.lab.runs.local_demo import INTENT_PURPOSE, PURPOSE
from toolbench.lab.worker.health import does_a_worker_beat
from toolbench.providers.provider_templates import ProviderTemplate

LOOK_BACK = 400  # failed trials, newest first, among which three of different classes are looked for
WORTH = 3
RECENT = 5


@dataclass(frozen=True, slots=True)
class WorthOpening:
    trial_id: int
    sentence: str
    failure_class: str
    model: str
    scenario: str


@dataclass(frozen=True, slots=True)
class FirstPage:
    """`working` is False when no worker has beaten for a minute: then trials only wait. `servers` is empty until local
    servers were looked for; `kinds` names those that can be."""

    keys: tuple[DetectedKey, ...]
    servers: tuple[LocalServer, ...]
    kinds: tuple[str, ...]
    templates: tuple[ProviderTemplate, ...]
    connected: tuple[ProviderLine, ...]
    published: Published | None
    failures: tuple[WorthOpening, ...]
    recent: tuple[Run, ...]
    working: bool

    @property
    def silent(self) -> tuple[str, ...]:
        """Kinds of local servers of which none answers."""
        return tuple(server.template.title for server in self.servers if server.models is None)


def get_first_page() -> FirstPage:
    """A fixed number of queries: none of them grows with the number of trials. Nothing is sent."""
    mine = Run.objects.filter(simulated=False, imported=False, deleted_at=None).exclude(
        purpose__in=[PURPOSE, INTENT_PURPOSE]
    )
    return FirstPage(
        keys=detected_keys(),
        servers=get_local_servers(),
        kinds=local_kinds(),
        templates=templates(),
        connected=tuple(line for line in get_providers() if line.own),
        published=get_published(),
        failures=_failures(),
        recent=tuple(mine[:RECENT]),
        working=does_a_worker_beat(),
    )


def _failures() -> tuple[WorthOpening, ...]:
    failed = Trial.objects.filter(outcome=Trial.Outcome.FAIL, run__simulated=False, run__deleted_at=None)
    failed = failed.filter(cell__control=False, run__imported=False)
    newest = failed.order_by("-pk").values_list("pk", "sentence", "failure_class", "config__model_name", "scenario")
    worth: dict[str, WorthOpening] = {}
    for row in newest[:LOOK_BACK]:
        found = WorthOpening(*row)
        worth.setdefault(found.failure_class, found)
    return tuple(worth.values())[:WORTH]
