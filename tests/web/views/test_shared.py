"""Share links (signed, expiring, revocable, without keys and notes) and the report of a run as one file."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_step, make_trials
from tests.page_html import read_html
from toolbench.lab.models import AuditEntry, Run, ShareLink, Trial

pytestmark = pytest.mark.django_db
NOTE = "a note that stays here"


@pytest.fixture
def runs() -> list[Run]:
    """Two runs of different models, with a note on a trial."""
    made = []
    for name in ("vendor/a", "vendor/b"):
        run = make_run(title=f"Run of {name}", label="private label")
        trials = make_trials(make_cell(make_config(run, make_model(name))), **{"pass": 3, "fail": 2})
        make_step(trials[0], bodies={"response": b"{}"})
        Trial.objects.filter(run=run).update(note=NOTE, label="odd")
        made.append(run)
    return made


def share(client: Client, **fields: object) -> str:
    """Make a share link and return its path."""
    page = read_html(client.post("/settings/links/", {"days": "7"} | fields))
    assert 'data-copy="http' in page
    found = re.search(r"http://testserver(/shared/[^<]+)<", page)
    assert found is not None, page
    return found[1]


@pytest.mark.parametrize("kind", ["run", "trial", "comparison"])
def test_share_link_shows_its_target_to_visitor(
    owner_client: Client, client: Client, runs: list[Run], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", "sk-planted-0123456789")
    make_provider("Leaky", key_source="environment", key_env="PLANTED")
    Trial.objects.update(sentence="It said sk-planted-0123456789.")
    target = {"run": runs[0].pk, "trial": runs[0].trials.filter(outcome="fail")[0].pk, "comparison": ""}[kind]
    query = f"a_run={runs[0].pk}&b_run={runs[1].pk}" if kind == "comparison" else ""
    path = share(owner_client, kind=kind, target=target, query=query)
    answer = client.get(path)
    assert answer.status_code == 200
    page = read_html(answer)
    assert {"run": "3/5", "trial": "vendor/a", "comparison": "3/5"}[kind] in page
    for hidden in (NOTE, "private label", "sk-planted", "/providers/", "script src"):
        assert hidden not in page
    assert answer.headers["X-Robots-Tag"] == "noindex"
    assert client.post(path).status_code == 405
    assert str(AuditEntry.objects.get()).startswith(f"owner added share link to {kind}")


def test_share_link_shows_comparison_of_three_sides(owner_client: Client, client: Client, runs: list[Run]) -> None:
    cell = make_cell(make_config(make_run(), make_model("vendor/c")))
    make_trials(cell, **{"pass": 5})
    ids = [*(run.pk for run in runs), cell.run_id]
    query = "&".join(f"{letter}_run={pk}" for letter, pk in zip("abc", ids, strict=True))
    assert "Make share link" in read_html(owner_client.get(f"/compare/?{query}"))
    page = read_html(client.get(share(owner_client, kind="comparison", query=query)))
    assert "2 sides against" in page
    assert page.count('<th scope="row">') == 3
    assert "5/5" in page
    assert "for 2 comparisons" in " ".join(page.split())
    assert NOTE not in page


def test_share_link_forged_expired_or_revoked_is_404(owner_client: Client, client: Client, runs: list[Run]) -> None:
    path = share(owner_client, kind="run", target=runs[0].pk)
    link = ShareLink.objects.get()
    forged = path.replace(f"/{link.pk}.", f"/{link.pk + 1}.")
    assert client.get(forged).status_code == 404
    ShareLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert client.get(path).status_code == 404
    ShareLink.objects.update(expires_at=timezone.now() + timedelta(days=1))
    assert client.get(path).status_code == 200
    owner_client.post(f"/settings/links/{link.pk}/revoke/")
    assert client.get(path).status_code == 404


def test_share_link_of_inactive_account_or_deleted_run_is_404(
    owner_client: Client, client: Client, runs: list[Run]
) -> None:
    path = share(owner_client, kind="run", target=runs[0].pk)
    User.objects.update(is_active=False)
    assert client.get(path).status_code == 404
    User.objects.update(is_active=True)
    Run.objects.update(deleted_at=timezone.now())
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "all"}, {"kind": "run", "target": "999999"}, {"kind": "comparison"},
        {"kind": "comparison", "query": "a_label=foo&b_label=bar&zzz=1"},
    ],
)  # fmt: skip
def test_share_link_form_refuses_invalid_target(owner_client: Client, fields: dict[str, str]) -> None:
    answer = owner_client.post("/settings/links/", {"days": "7"} | fields)
    assert answer.status_code == 422
    assert "No link was created" in read_html(answer)
    assert not ShareLink.objects.exists()


def test_share_link_form_names_filters_of_the_comparison_to_correct(owner_client: Client) -> None:
    fields = {"days": "7", "kind": "comparison", "query": "a_run=x&b_day=y"}
    text = read_html(owner_client.post("/settings/links/", fields))
    assert "The comparison cannot be shared. Correct these filters first: Baseline: Run, Side 2: Day." in text


def test_share_link_of_other_person_is_not_revoked(owner_client: Client, client: Client, runs: list[Run]) -> None:
    share(owner_client, kind="run", target=runs[0].pk)
    link = ShareLink.objects.get()
    client.force_login(User.objects.create(username="ana", is_staff=True))
    assert "no such link" in read_html(client.post(f"/settings/links/{link.pk}/revoke/", follow=True))
    link.refresh_from_db()
    assert link.revoked_at is None


def test_run_report_page_is_one_file_without_network(owner_client: Client, runs: list[Run]) -> None:
    answer = owner_client.get(f"/runs/{runs[0].pk}/report.html")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="toolbench-run-{runs[0].pk}.html"'
    page = read_html(answer)
    assert "3/5" in page
    assert NOTE not in page
    assert re.findall(r"""(?:src|href)=["'](?!data:)""", page) == []
    assert "url(/" not in page
    assert "--shape-pass" in page
    assert owner_client.get("/runs/999999/report.html").status_code == 404


def test_run_and_trial_pages_offer_share_link(owner_client: Client, runs: list[Run]) -> None:
    trial = runs[0].trials.first()
    assert trial is not None
    for address in (f"/runs/{runs[0].pk}/", f"/trials/{trial.pk}/"):
        main = read_html(owner_client.get(address)).partition("<main")[2].partition("</main>")[0]
        assert "Make share link" in main, address
