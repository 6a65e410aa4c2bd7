"""Page that asks before a run is repeated, and the repeat that it starts."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.fixtures import Settings

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_trials
from tests.page_html import read_html
from toolbench.lab.accounts.roles import Role, set_role
from toolbench.lab.models import Run, Trial

pytestmark = pytest.mark.django_db


def make_finished_run(base_url: str = "http://127.0.0.1:9", **columns: object) -> Run:
    """Make a run with three planned trials, of which one failed, and one that was added."""
    run = make_run(state=Run.State.FINISHED, trials_per_cell=3, **columns)
    cell = make_cell(make_config(run, model=make_model(provider=make_provider(base_url=base_url))))
    make_trials(cell, **{"pass": 3, "fail": 1})
    Trial.objects.filter(pk__in=cell.trials.order_by("-pk")[:1]).update(added_by_hand=True)
    return run


@pytest.mark.parametrize(("kind", "words"), [("repeat", "instances and seeds"), ("aa", "new sampling seeds")])
def test_repeat_page_names_trials_and_starts_nothing(owner_client: Client, kind: str, words: str) -> None:
    run = make_finished_run()
    page = read_html(owner_client.get(f"/runs/{run.pk}/repeat/?kind={kind}"))

    assert "Start 3 trials" in page
    assert words in page
    assert Run.objects.count() == 1


def test_repeat_page_confirms_paid_requests_at_once(owner_client: Client, settings: Settings) -> None:
    settings.CONFIRM_ABOVE_REQUESTS = 1
    run = make_finished_run(base_url="https://api.example.com")
    page = read_html(owner_client.get(f"/runs/{run.pk}/repeat/"))

    assert "These requests may cost money." in page
    (agreed,) = [part.split('"')[0] for part in page.split('name="agreed" value="')[1:]]
    owner_client.post(f"/runs/{run.pk}/act/", {"action": "repeat", "agreed": agreed})
    assert Run.objects.filter(repeat_of=run).count() == 1


def test_repeat_page_says_why_run_cannot_be_repeated(owner_client: Client) -> None:
    run = make_finished_run()
    run.configs.update(provider=None, provider_name="gone")
    page = read_html(owner_client.get(f"/runs/{run.pk}/repeat/"))

    assert "the provider gone was deleted" in page
    assert "Start 3 trials" not in page


@pytest.mark.parametrize("page", ["repeat", "missing"])
def test_pages_that_plan_trials_of_a_run_label_simulated_models(owner_client: Client, page: str) -> None:
    for is_simulated in (True, False):
        run = make_run(state=Run.State.FINISHED, simulated=is_simulated)
        text = read_html(owner_client.get(f"/runs/{run.pk}/{page}/"))
        assert ("Simulated models have known faults" in text) == is_simulated


def test_repeat_page_of_unknown_run_is_404(owner_client: Client) -> None:
    assert owner_client.get("/runs/999999/repeat/").status_code == 404


def test_noise_repeat_page_of_noise_repeat_names_its_original(owner_client: Client) -> None:
    original = make_finished_run()
    repeat = make_run(state=Run.State.FINISHED, purpose="aa", repeat_of=original)

    assert f"Repeat run {original.pk}<" in read_html(owner_client.get(f"/runs/{repeat.pk}/repeat/?kind=aa"))
    assert f"Repeat run {repeat.pk}<" in read_html(owner_client.get(f"/runs/{repeat.pk}/repeat/"))


def test_run_page_names_repeated_run_and_added_trials(owner_client: Client) -> None:
    run = make_finished_run()
    run.cells.update(added_by_hand=1)
    assert "× 3 trials + 1 added" in " ".join(read_html(owner_client.get(f"/runs/{run.pk}/")).split())

    repeat = make_run(state=Run.State.FINISHED, repeat_of=run)
    page = read_html(owner_client.get(f"/runs/{repeat.pk}/"))
    assert f'href="/runs/{run.pk}/">run {run.pk}' in page.split("repeats")[1]


@pytest.mark.parametrize(
    ("purpose", "words"),
    [("", "repeats"), ("aa", "repeats"), ("resend", "repeats a trial of"), ("decide", "adds trials to")],
)
def test_run_page_says_what_it_does_with_its_original(owner_client: Client, purpose: str, words: str) -> None:
    original = make_finished_run()
    run = make_run(state=Run.State.FINISHED, repeat_of=original, purpose=purpose)
    page = " ".join(read_html(owner_client.get(f"/runs/{run.pk}/")).split())
    assert f"· {words} " in page.partition(f'href="/runs/{original.pk}/"')[0][-60:]


def test_repeat_of_missing_trials_is_an_ordinary_run(owner_client: Client) -> None:
    run = make_finished_run(purpose="decide", repeat_of=make_finished_run())
    owner_client.post(f"/runs/{run.pk}/act/", {"action": "repeat"})
    assert Run.objects.get(repeat_of=run).purpose == ""


def test_noise_repeat_page_of_the_playground_says_why_not(owner_client: Client) -> None:
    run = make_finished_run(purpose=Run.PLAYGROUND)
    page = read_html(owner_client.get(f"/runs/{run.pk}/repeat/?kind=aa"))
    assert "Results leave out runs of the playground." in page
    assert "Start 3 trials" not in page


def test_repeat_page_without_planned_trials_starts_nothing(owner_client: Client) -> None:
    run = make_finished_run()
    run.trials.update(added_by_hand=True)
    page = read_html(owner_client.get(f"/runs/{run.pk}/repeat/"))
    assert "The run has no trials to repeat" in page
    assert "Start 0 trials" not in page


def test_repeat_page_says_that_a_stopping_rule_is_not_repeated(owner_client: Client) -> None:
    run, ruled = make_finished_run(), make_finished_run(until={"width": 20})
    pages = [read_html(owner_client.get(f"/runs/{pk}/repeat/")) for pk in (run.pk, ruled.pk)]
    assert ["The original used sequential stopping." in page for page in pages] == [False, True]


@pytest.mark.django_db(transaction=True)
def test_viewer_sees_state_and_links_of_a_run_but_no_actions(browser_page: Page, owner: User) -> None:
    run = make_finished_run()
    set_role(owner, Role.VIEWER)
    owner.save()
    browser_page.goto(f"/runs/{run.pk}/")
    for name in ("Decide which to ship", "Compare with…"):
        expect(browser_page.get_by_role("link", name=name)).to_be_visible()
    expect(browser_page.locator(".run-actions .lede")).to_be_visible()
    expect(browser_page.get_by_role("link", name="Repeat…")).to_have_count(0)
    expect(browser_page.locator(".run-actions button")).to_have_count(0)


@pytest.mark.django_db(transaction=True)
def test_repeat_is_started_from_run_page_after_question(browser_page: Page) -> None:
    run = make_finished_run()
    browser_page.goto(f"/runs/{run.pk}/")
    browser_page.get_by_role("link", name="Repeat…").click()
    assert Run.objects.count() == 1
    browser_page.get_by_role("link", name="Repeat A/A").click()
    browser_page.get_by_role("button", name="Start 3 trials").click()

    expect(browser_page.locator("main")).to_contain_text(f"This run repeats run {run.pk} with new sampling seeds")


@pytest.mark.parametrize("kind", ["repeat", "aa"])
def test_repeat_page_sends_twelve_queries_at_most(owner_client: Client, kind: str) -> None:
    run = make_finished_run()
    for name in ("Second", "Third"):
        cell = make_cell(make_config(run, model=make_model(provider=make_provider(name, budget_per_month=5.0))))
        make_trials(cell, **{"pass": 2})
    with CaptureQueriesContext(connection) as queries:
        page = read_html(owner_client.get(f"/runs/{run.pk}/repeat/?kind={kind}"))
    assert "Start 7 trials" in page
    assert len(queries) <= 12


def test_repeat_page_names_provider_that_has_spent_its_budget(owner_client: Client) -> None:
    run = make_finished_run()
    provider = make_provider("Spent", budget_per_month=0.5)
    make_trials(make_cell(make_config(run, model=make_model(provider=provider))), **{"pass": 1})
    run.trials.filter(provider=provider).update(cost=0.75, answered_turns=1, finished_at=timezone.now())
    page = read_html(owner_client.get(f"/runs/{run.pk}/repeat/"))
    assert "Spent has spent $0.7500 of its budget of $0.5000" in page
    assert "Start 4 trials" not in page
