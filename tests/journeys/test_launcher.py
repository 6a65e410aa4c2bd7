"""Launcher: plans a run of three models, two profiles and the typical scenarios with a request limit."""

from playwright.sync_api import Page, Route, expect

from tests.journeys.run_form import TYPICAL_SCENARIOS, RunForm, fill_form, wait_until_idle
from tests.worker_process import WorkerProcess
from toolbench.lab.models import Model, Run

RUN_FORM = RunForm(
    models=("perfect", "reliable-70", "legacy-function-call"),
    scenarios=TYPICAL_SCENARIOS,
    profiles=("default", "grok_default"),
    request_cap=400,
)
MAX_FIELDS = 300  # of the form, more than it has with closed groups
# In one step, since plans of the fields that were filled in last may still replace the button.
SEND_FORM = """() => {
  const button = document.querySelector(".start-bar button");
  button.form.dispatchEvent(new SubmitEvent("submit", {submitter: button}));
  return button.getAttribute("formaction");
}"""
TRIALS = 3 * 2 * len(TYPICAL_SCENARIOS) * 10


def test_plan_is_not_replaced_while_a_start_is_under_way(browser_page: Page, personas: None) -> None:
    page = browser_page
    fill_form(page, RunForm(models=("perfect",)))
    start = page.get_by_role("button", name="Start 10 trials")
    expect(start).to_be_visible()
    sent_to = page.evaluate(SEND_FORM)
    with page.expect_response(lambda response: "trials=20" in response.url) as plan:
        page.get_by_label("Trials for each scenario").fill("20")
    plan.value.finished()
    assert start.get_attribute("formaction") == sent_to

    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow'))")  # back on the page after the start
    page.get_by_label("Trials for each scenario").fill("30")
    expect(page.get_by_role("button", name="Start 30 trials")).not_to_have_attribute("formaction", sent_to or "")


def test_press_of_start_is_not_lost_if_a_plan_arrives(browser_page: Page, personas: None) -> None:
    page = browser_page
    fill_form(page, RunForm(models=("perfect",)))
    button = page.get_by_role("button", name="Start 10 trials")
    expect(button).to_be_visible()
    page.get_by_label("Trials for each scenario").fill("20")  # its plan is requested when the button gets the focus
    button.hover()
    with page.expect_response(lambda response: "trials=20" in response.url) as plan:
        page.mouse.down()
    plan.value.finished()
    page.mouse.up()

    expect(page.locator("#live")).to_be_visible()
    assert Run.objects.get().trials.count() == 20


def test_plan_shows_what_was_entered_before_scripts_were_loaded(browser_page: Page, personas: None) -> None:
    page, delayed = browser_page, list[Route]()
    page.route("**/*.js", lambda route: delayed.append(route))
    page.goto(f"/runs/new/?models={Model.objects.get(name='perfect').pk}&scenarios=happy_path", wait_until="commit")
    page.get_by_label("Trials for each scenario").fill("7")
    for route in delayed:
        route.continue_()
    page.unroute("**/*.js")

    expect(page.get_by_role("button", name="Start 7 trials")).to_be_visible()


def test_plan_of_an_unchanged_form_is_not_requested_again(browser_page: Page, personas: None) -> None:
    page, requests = browser_page, list[str]()
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"/runs/new/?models={Model.objects.get(name='perfect').pk}&scenarios=happy_path&trials=10")
    expect(page.get_by_role("button", name="Start 10 trials")).to_be_visible()
    assert sum("/runs/new/" in url for url in requests) == 1


def test_start_stays_in_sight_on_a_phone_and_covers_no_focus(browser_page: Page, personas: None) -> None:
    page = browser_page
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/runs/new/?models={Model.objects.get(name='perfect').pk}&scenarios=happy_path&trials=10")
    start = page.get_by_role("button", name="Start 10 trials")
    expect(start).to_be_in_viewport(ratio=1)
    bar, places = page.locator(".start-bar").bounding_box(), page.locator(".foot-nav").bounding_box()
    assert bar
    assert places
    assert bar["y"] + bar["height"] <= places["y"]

    page.locator("#id_find").focus()
    for _ in range(MAX_FIELDS):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('.start-bar') !== null"):
            break
        bottom = page.evaluate("document.activeElement.getBoundingClientRect().bottom")
        assert bottom <= bar["y"], page.evaluate("document.activeElement.outerHTML")
    expect(start).to_be_focused()
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    end = page.locator("footer").bounding_box()
    assert end
    assert end["y"] + end["height"] <= bar["y"] + 1


def test_launcher_sees_trial_count_and_request_limit_holds(
    browser_page: Page, personas: None, worker: WorkerProcess
) -> None:
    page = browser_page
    fill_form(page, RUN_FORM)
    summary = page.get_by_role("complementary", name="Plan summary")
    expect(summary).to_contain_text(f"{TRIALS} trials")
    expect(summary).to_contain_text("30 cells")
    assert not Run.objects.exists()

    page.get_by_role("button", name=f"Start {TRIALS} trials").click()

    expect(page.locator("#live")).to_be_visible()
    expect(page.locator("#live .progress i").first).to_be_attached()
    expect(page.get_by_text("The limit of 400 requests is reached")).to_be_visible()
    wait_until_idle(page)
    run = Run.objects.get()
    assert run.requests_reserved == 400
    assert run.trials.count() == TRIALS
    assert set(run.trials.values_list("state", flat=True)) == {"done", "queued"}
    assert not run.trials.filter(outcome="infra").exists()
