"""Page that adds missing trials to several cells: choice, estimate and confirmation."""

import re

import pytest
from django.test import Client
from playwright.sync_api import Page

from tests.factories import make_model, make_provider
from tests.lab.scripted_runs import launch_run
from tests.page_html import read_html
from toolbench.lab.models import AuditEntry, Provider, Run, SamplingProfile

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    """Run with two cells of two trials each, at a provider without paid requests."""
    own_model = make_model(provider=make_provider("Own", base_url="http://10.0.0.5"))
    return launch_run(own_model, trials=2, scenarios=("happy_path", "weather"))


def test_missing_trials_page_is_linked_by_run_page_and_matrix(owner_client: Client, run: Run) -> None:
    path = f'href="/runs/{run.pk}/missing/"'
    assert path in read_html(owner_client.get(f"/runs/{run.pk}/"))
    assert path in read_html(owner_client.get(f"/matrix/?run={run.pk}"))


def test_missing_trials_page_adds_trials_to_all_cells_below_target(owner_client: Client, run: Run) -> None:
    text = read_html(owner_client.get(f"/runs/{run.pk}/missing/?target=5"))
    cells = re.findall(r'name="cell" id="cell-\d+" value="(\d+)" checked', text)
    assert len(cells) == 2
    assert "Add 6 trials" in text
    assert run.trials.count() == 4
    answer = owner_client.post(
        f"/runs/{run.pk}/missing/", {"target": "5", "chosen": "1", "shown": "6", "cell": cells}, follow=True
    )
    assert "6 trials added; they are marked as added manually." in read_html(answer)
    assert run.trials.filter(added_by_hand=True).count() == 6
    assert AuditEntry.objects.get().subject.startswith(f"run {run.pk}: 6 trials added")


def test_missing_trials_page_chooses_all_cells_once_some_lack_trials(owner_client: Client, run: Run) -> None:
    field = 'name="chosen"'
    assert field not in read_html(owner_client.get(f"/runs/{run.pk}/missing/?target=1"))  # no cell lacks trials
    assert field in read_html(owner_client.get(f"/runs/{run.pk}/missing/?target=5"))


def test_missing_trials_page_keeps_choice_and_counts_its_trials(owner_client: Client, run: Run) -> None:
    chosen = run.cells.order_by("pk")[0].pk
    text = read_html(owner_client.get(f"/runs/{run.pk}/missing/?target=5&chosen=1&cell={chosen}"))
    assert re.findall(r'name="cell" id="cell-\d+" value="(\d+)" checked', text) == [str(chosen)]
    assert "Add 3 trials" in text
    assert (
        "Add " not in read_html(owner_client.get(f"/runs/{run.pk}/missing/?target=5&chosen=1")).partition("To add")[2]
    )


def test_missing_trials_page_confirms_paid_requests(owner_client: Client, run: Run) -> None:
    Provider.objects.update(base_url="https://example.test")
    sent = {"target": "900", "shown": "1796", "cell": list(run.cells.values_list("pk", flat=True))}
    text = read_html(owner_client.post(f"/runs/{run.pk}/missing/", sent))
    assert "These requests may cost money." in text
    assert run.trials.count() == 4
    (agreed,) = re.findall(r'name="agreed" value="(\d+)"', text)
    owner_client.post(f"/runs/{run.pk}/missing/", sent | {"agreed": agreed})
    assert run.trials.count() == 1800


def test_missing_trials_page_adds_no_more_trials_than_shown(owner_client: Client, run: Run) -> None:
    sent = {"target": "5", "shown": "3", "cell": list(run.cells.values_list("pk", flat=True))}
    text = read_html(owner_client.post(f"/runs/{run.pk}/missing/", sent))
    assert "6 trials are missing, more than the 3 that were shown" in text
    assert "Add 6 trials" in text
    assert run.trials.count() == 4


def test_missing_trials_page_updates_count_in_browser(browser_page: Page, transactional_db: None) -> None:
    own_model = make_model(provider=make_provider("Own", base_url="http://10.0.0.5"))
    SamplingProfile.objects.get_or_create(name="default")
    run = launch_run(own_model, trials=2, scenarios=("happy_path", "weather"))
    browser_page.goto(f"/runs/{run.pk}/missing/?target=5")
    browser_page.get_by_role("checkbox").first.uncheck()
    browser_page.get_by_role("button", name="Add 3 trials").click()
    browser_page.wait_for_url(f"**/runs/{run.pk}/")
    assert run.trials.count() == 7


def test_missing_trials_page_confirms_paid_requests_in_browser(browser_page: Page, transactional_db: None) -> None:
    SamplingProfile.objects.get_or_create(name="default")
    run = launch_run(make_model(), trials=2, scenarios=("happy_path", "weather"))
    browser_page.goto(f"/runs/{run.pk}/missing/?target=400")
    browser_page.get_by_role("button", name="Add 796 trials").click()
    browser_page.get_by_label("Send paid requests").check()
    browser_page.wait_for_load_state("networkidle")
    browser_page.get_by_role("button", name="Add 796 trials").click()
    browser_page.wait_for_url(f"**/runs/{run.pk}/")
    assert run.trials.count() == 800


@pytest.mark.parametrize("target", ["0", "-1", "2001", "many", "²", "1e3", "9" * 40, "\0"])
def test_missing_trials_page_refuses_invalid_target(owner_client: Client, run: Run, target: str) -> None:
    cells = list(run.cells.values_list("pk", flat=True))
    answer = owner_client.post(f"/runs/{run.pk}/missing/", {"target": target, "chosen": "1", "cell": cells})
    assert "Enter 1 to 2,000 trials" in read_html(answer)
    kept = target if target.strip() else "2"
    assert re.search(rf'id="target"[^>]*value="{re.escape(kept)}"', read_html(answer))
    assert run.trials.count() == 4


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("999999", "has no such cell"),
        ("x", "None of the chosen cells"),
        ("9" * 40, "None of the chosen cells"),
        ("-1", "None of the chosen cells"),
    ],
)
def test_missing_trials_page_refuses_unknown_cell(owner_client: Client, run: Run, cell: str, sentence: str) -> None:
    answer = owner_client.post(f"/runs/{run.pk}/missing/", {"target": "9", "chosen": "1", "shown": "99", "cell": cell})
    assert sentence in read_html(answer)
    assert run.trials.count() == 4


def test_missing_trials_page_of_unknown_run_is_404(owner_client: Client) -> None:
    assert owner_client.get("/runs/424242/missing/").status_code == 404
    assert owner_client.post("/runs/424242/missing/", {"target": "5", "chosen": "1"}).status_code == 404
