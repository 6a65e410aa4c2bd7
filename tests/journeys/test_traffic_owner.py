"""Traffic owner: imports 10,000 recorded lines as drafts and accepts the drafts as test cases."""

import json
from itertools import cycle, islice
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.lab.interchange.traffic.records import build_logged
from toolbench.lab.models import Case, TrafficDraft

LINES, QUESTIONS = 10_000, 2_000
SECRET = "sk-proj-0123456789abcdefghijABCDEFGHIJ0123456789"


def write_log(path: Path) -> None:
    """Write a log in which each question occurs five times; one question contains a key."""
    lines = [json.dumps(build_logged(f"How is the weather in town {number}?")) for number in range(QUESTIONS - 1)]
    lines.append(json.dumps(build_logged(f"The key is {SECRET}. How is the weather in Rome?")))
    path.write_text("\n".join(islice(cycle(lines), LINES)), "utf-8")


def test_traffic_owner_imports_10000_lines_as_drafts_and_cases(
    browser_page: Page, catalogue: None, tmp_path: Path
) -> None:
    page = browser_page
    write_log(tmp_path / "log.jsonl")
    page.goto("/cases/")
    page.get_by_role("link", name="Import traffic").click()
    page.get_by_label("File").set_input_files(tmp_path / "log.jsonl")
    page.get_by_role("button", name="Create drafts from file").click()
    expect(page.get_by_role("status")).to_have_text(
        "Records read: 10,000; drafts added: 2,000; drafts with a masked secret: 1."
    )
    first = page.get_by_role("table").get_by_role("row").nth(1)
    expect(first).to_contain_text("get_weather")
    assert set(TrafficDraft.objects.values_list("count", flat=True)) == {LINES // QUESTIONS}

    page.get_by_label("Set").fill("Own traffic")
    page.get_by_label("all 2,000 open drafts").check()
    page.get_by_role("button", name="Accept").click()
    expect(page.get_by_text("2,000 test cases created.")).to_be_visible()
    page.get_by_role("link", name="2,000 accepted").click()
    expect(page.get_by_role("table")).to_contain_text("get_weather")
    assert Case.objects.filter(set__name="Own traffic", set__public=False).count() == QUESTIONS
    assert not TrafficDraft.objects.filter(definition__contains=SECRET).exists()
