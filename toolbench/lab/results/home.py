"""The home page: what can be connected, the published matrix, failures worth opening and the user's own runs.

The fields are in the order of the page. The local run is in `local_run`.
"""

from dataclasses import dataclass

from toolbench.lab.endpoints.connect import DetectedKey, list_detected_keys, list_templates
from toolbench.lab.endpoints.local_servers import DetectedServer, get_detected_servers, list_server_titles
from toolbench.lab.endpoints.setup_pages import ProviderRow, get_providers
from toolbench.lab.models import Trial
from toolbench.lab.results.attention import AttentionItem, list_attention
from toolbench.lab.results.published import PublishedMatrix, get_published_matrix
from toolbench.lab.results.run.index import RunRow, get_runs
from toolbench.lab.runs.local_demo import INTENT_PURPOSE, WEATHER_PURPOSE
from toolbench.lab.worker.health import is_worker_alive
from toolbench.providers.templates import ProviderTemplate

MAX_FAILURES_SEARCHED = 400  # failed trials, newest first, among which three of different classes are looked for
MAX_FAILURES_SHOWN = 3
MAX_RECENT_RUNS = 5


@dataclass(frozen=True, slots=True)
class FailureHighlight:
    """A failed trial that the home page links to."""

    trial_id: int
    sentence: str
    failure_class: str
    model: str
    scenario: str


@dataclass(frozen=True, slots=True)
class HomePage:
    """Everything that the home page shows.

    Attributes:
        recent: the newest of the user's own runs; the local run is not one of them.
        attention: what needs a look.
        kinds: names of the local servers that can be detected.
        servers: empty until local servers have been searched for.
        has_worker: False when no worker has sent a heartbeat for a minute; trials then stay queued.
    """

    keys: tuple[DetectedKey, ...]
    servers: tuple[DetectedServer, ...]
    kinds: tuple[str, ...]
    templates: tuple[ProviderTemplate, ...]
    connected: tuple[ProviderRow, ...]
    published: PublishedMatrix | None
    failures: tuple[FailureHighlight, ...]
    recent: tuple[RunRow, ...]
    attention: tuple[AttentionItem, ...]
    has_worker: bool

    @property
    def silent(self) -> tuple[str, ...]:
        """Return the kinds of local servers of which none answers."""
        return tuple(server.template.title for server in self.servers if server.models is None)


def get_home_page() -> HomePage:
    """Return the home page with a fixed number of queries, whatever the number of trials. No request is sent."""
    recent = get_runs("own", MAX_RECENT_RUNS, without=(WEATHER_PURPOSE, INTENT_PURPOSE))
    connected = tuple(line for line in get_providers() if line.is_connected)
    return HomePage(
        keys=list_detected_keys(),
        servers=get_detected_servers(),
        kinds=list_server_titles(),
        templates=list_templates(),
        connected=connected,
        published=get_published_matrix(),
        failures=_list_failures(),
        recent=recent,
        attention=list_attention(recent, connected),
        has_worker=is_worker_alive(),
    )


def _list_failures() -> tuple[FailureHighlight, ...]:
    failed = Trial.objects.filter(outcome=Trial.Outcome.FAIL, run__simulated=False, run__deleted_at=None)
    failed = failed.filter(cell__control=False, run__imported=False)
    newest = failed.order_by("-pk").values_list("pk", "sentence", "failure_class", "config__model_name", "scenario")
    worth: dict[str, FailureHighlight] = {}
    for row in newest[:MAX_FAILURES_SEARCHED]:
        found = FailureHighlight(*row)
        worth.setdefault(found.failure_class, found)
    return tuple(worth.values())[:MAX_FAILURES_SHOWN]
