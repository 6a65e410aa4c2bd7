"""Every number that links to trials opens exactly the trials that it counted, on every page."""

import re
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client

from tests.factories import make_cell, make_config, make_run, make_trials, recompute_stale_cells
from tests.lab.scripted_runs import answer_correctly, make_scripted_model, run_worker_session
from tests.lab.simulated_runs import get_simulated_model, run_to_end, serve_simulated_models
from tests.page_html import read_html
from toolbench.lab.cases.drafts import CaseDraft, parse_draft
from toolbench.lab.cases.edit import add_case, build_run_request
from toolbench.lab.models import Run
from toolbench.lab.runs.launch import launch
from toolbench.providers.scripted_server import ScriptedServer, tool_call_reply

pytestmark = pytest.mark.django_db(transaction=True)

MAX_PAGES = 400
MAX_SIMILAR_PAGES = 3  # pages of one path pattern and one set of parameter names
STARTS = ("/", "/matrix/?scope=demo", "/failures/?scope=demo", "/decide/?scope=demo", "/demo/", "/trials/?demo=1")
NAMED_LISTS = ("All trials", "failed", "occurred")
NOT_PAGES = re.compile(r"/(export|record|trials|report|bundle)\.|/steps/|/health/live|/sign-|/settings/|/theme/")
TOOLS = """[{"type": "function", "function": {"name": "cancel_order", "description": "",
"parameters": {"type": "object", "properties": {"reason": {"type": "string"}}}}}]"""


@dataclass(frozen=True, slots=True)
class Link:
    """Link on a page.

    Attributes:
        count: the number of trials that the page promises; None without a promise.
        in_row: whether the link stands in a row of a table.
    """

    href: str
    text: str
    count: int | None
    in_row: bool = False

    @property
    def lacks_count(self) -> bool:
        """Whether a count is missing: a number or a link in a table row needs one, a link to a named list does not."""
        is_named_list = self.text in NAMED_LISTS or re.fullmatch(r"#\d+", self.text)
        return self.count is None and bool(re.match(r"\d", self.text) or (self.in_row and not is_named_list))


class _LinkParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Link] = []
        self._open: tuple[str, str | None] | None = None
        self._text = ""
        self._rows = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self._rows += tag == "tr"
        if tag == "a" and (href := attributes.get("href")):
            self._open, self._text = (href, attributes.get("data-count")), ""

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        self._rows -= tag == "tr"
        if tag == "a" and self._open:
            href, count = self._open
            self.found.append(Link(href, " ".join(self._text.split()), int(count) if count else None, self._rows > 0))
            self._open = None


def read_links(html: str) -> list[Link]:
    parser = _LinkParser()
    parser.feed(html)
    return parser.found


def read_total(html: str) -> int:
    """Return the number of trials that a list of trials states."""
    found = re.search(r'data-total="(\d+)"', html)
    assert found, "the list of trials does not say how many there are"
    return int(found[1])


def crawl(client: Client) -> Iterator[tuple[str, str]]:
    """Yield the address and HTML of pages that links lead to, at most `MAX_SIMILAR_PAGES` of each kind."""
    runs = Run.objects.values_list("pk", flat=True)
    starts = [*STARTS, *(f"/{page}/?run={run}" for run in runs for page in ("failures", "matrix"))]
    waiting, known, kinds = deque(starts), set(starts), defaultdict[tuple[str, tuple[str, ...]], int](int)
    visited = 0
    while waiting and visited < MAX_PAGES:
        address = waiting.popleft()
        answer = client.get(address)
        if answer.status_code != 200 or not answer["Content-Type"].startswith("text/html"):
            continue
        html = read_html(answer)
        visited += 1
        yield address, html
        for link in read_links(html):
            parts = urlsplit(link.href)
            target = f"{parts.path}?{parts.query}" if parts.query else parts.path
            if parts.netloc or not parts.path.startswith("/") or NOT_PAGES.search(parts.path) or target in known:
                continue
            kind = (re.sub(r"\d+", "N", parts.path), tuple(sorted({name for name, _ in parse_qsl(parts.query)})))
            kinds[kind] += 1
            if kinds[kind] <= MAX_SIMILAR_PAGES:
                known.add(target)
                waiting.append(target)


def _make_and_run_own_case() -> None:
    draft = CaseDraft(
        tools=TOOLS,
        message="Cancel order 17, it is late.",
        expect='{"name": "cancel_order", "arguments": {"reason": "late"}}',
    )
    case = add_case(*parse_draft(draft))
    with ScriptedServer(lambda seen: tool_call_reply(("cancel_order", {"reason": "dull"}))) as provider:
        model = make_scripted_model(provider, "own-case")
        launch(build_run_request((case.slug,), model.pk, 2))
        run_worker_session(model)
    run_to_end(get_simulated_model("perfect"), scenarios=(case.slug,), trials=3)


@pytest.fixture
def results() -> None:
    """Make simulated, own and imported runs with failures of several causes, a cancelled run and a test case."""
    names = ("perfect", "wrong-types", "prose-only", "rate-limited", "broken-json", "several-at-once", "html-200")
    scenarios = ("happy_path", "missing_workspace_id", "weather", "chat_only", "recovery_busy")
    with serve_simulated_models():
        run_to_end(*map(get_simulated_model, names), scenarios=scenarios, trials=3, strategies=("raw", "production"))
        run_to_end(get_simulated_model("wrong-types"), scenarios=("happy_path",), trials=4, instance_kind="drawn")
        with ScriptedServer(answer_correctly) as provider:
            model = make_scripted_model(provider)
            for _ in range(2):
                launch(build_run_request(("happy_path", "happy_path_parallel", "chat_only"), model.pk, 3))
                run_worker_session(model)
        _make_and_run_own_case()
    imported = make_cell(make_config(make_run(imported=True, origin={"kind": "bundle"})))
    make_trials(imported, **{"pass": 2, "fail": 1})
    cancelled = make_cell(make_config(make_run(state=Run.State.CANCELLED)))
    make_trials(cancelled, **{"pass": 2, "cancelled": 3})
    recompute_stale_cells()


def test_pages_counting_links_open_exactly_their_trials(results: None, owner_client: Client) -> None:
    wrong: list[str] = []
    followed = set[Link]()
    pages = 0
    for address, html in crawl(owner_client):
        pages += 1
        for link in read_links(html):
            if not link.href.startswith("/trials/?") or link in followed:
                continue
            followed.add(link)
            if link.count is None:
                if link.lacks_count:
                    wrong.append(f"{address}: “{link.text}” does not say what it opens: {link.href}")
                continue
            opened = read_total(read_html(owner_client.get(link.href)))
            if opened != link.count:
                wrong.append(f"{address}: “{link.text}” counts {link.count}, opens {opened}: {link.href}")
    assert wrong == []
    assert pages > 60
    assert sum(link.count is not None for link in followed) > 100
