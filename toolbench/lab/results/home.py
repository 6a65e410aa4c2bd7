"""Home page: connections, the published matrix, newest failures, newest runs and problems.

The demonstration runs on the same page are read by `toolbench/lab/runs/local_demo.py`.
"""

from dataclasses import dataclass

from toolbench.lab.endpoints.local_servers import DetectedServer, get_detected_servers, list_server_titles
from toolbench.lab.endpoints.setup_pages import (
    DetectedKey,
    ProviderRow,
    get_providers,
    list_detected_keys,
    list_templates,
)
from toolbench.lab.models import Run, Trial
from toolbench.lab.results.attention import AttentionItem, list_attention, read_site_state
from toolbench.lab.results.published import PublishedMatrix, get_published_matrix
from toolbench.lab.results.run.index import RunRow, get_runs
from toolbench.lab.runs.local_demo import DEMO_PURPOSES
from toolbench.providers.templates import ProviderTemplate

MAX_FAILURES_SEARCHED = 400  # newest failed trials, from which those of different failure classes are chosen
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
    """Content of the home page.

    Attributes:
        keys: environment variables that contain an API key.
        servers: result of the last detection of local model servers, also for those that did not answer; empty
            without a detection since the web server started.
        server_titles: names of the kinds of local model servers that can be detected.
        templates: templates of the providers that can be connected.
        connected: providers that a user connected.
        published: the newest published matrix; None if none is loaded.
        failures: newest failed trials, one for each failure class, at most MAX_FAILURES_SHOWN.
        recent: newest runs with real models, without imported and demonstration runs.
        attention: problems to point out.
        has_worker: whether a worker has sent a heartbeat within a minute; without one, trials stay queued.
    """

    keys: tuple[DetectedKey, ...]
    servers: tuple[DetectedServer, ...]
    server_titles: tuple[str, ...]
    templates: tuple[ProviderTemplate, ...]
    connected: tuple[ProviderRow, ...]
    published: PublishedMatrix | None
    failures: tuple[FailureHighlight, ...]
    recent: tuple[RunRow, ...]
    attention: tuple[AttentionItem, ...]
    has_worker: bool

    @property
    def unanswered_server_titles(self) -> tuple[str, ...]:
        """Return the names of the kinds of local model servers that did not answer the last detection."""
        return tuple(server.template.title for server in self.servers if server.model_count is None)


def get_home_page() -> HomePage:
    """Return the home page with a number of queries that does not depend on the number of trials."""
    recent = get_runs("own", MAX_RECENT_RUNS, excluded_purposes=DEMO_PURPOSES)
    provider_rows, state = get_providers(), read_site_state()
    providers = [row.provider for row in provider_rows]
    connected = tuple(row for row in provider_rows if row.is_connected)
    return HomePage(
        keys=list_detected_keys(providers),
        servers=get_detected_servers(providers),
        server_titles=list_server_titles(),
        templates=list_templates(),
        connected=connected,
        published=get_published_matrix(),
        failures=_list_failures(),
        recent=recent,
        attention=list_attention(recent, connected, state),
        has_worker=state.has_worker,
    )


def _list_failures() -> tuple[FailureHighlight, ...]:
    failed = Trial.objects.filter(outcome=Trial.Outcome.FAIL, run__simulated=False, run__deleted_at=None)
    failed = failed.filter(cell__control=False, run__imported=False).exclude(run__purpose=Run.PLAYGROUND)
    newest = failed.order_by("-pk").values_list("pk", "sentence", "failure_class", "config__model_name", "scenario")
    by_class: dict[str, FailureHighlight] = {}
    for row in newest[:MAX_FAILURES_SEARCHED]:
        failure = FailureHighlight(*row)
        by_class.setdefault(failure.failure_class, failure)
    return tuple(by_class.values())[:MAX_FAILURES_SHOWN]
