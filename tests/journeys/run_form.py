"""Launch form, filled in and sent in a browser."""

from dataclasses import dataclass

from playwright.sync_api import Locator, Page, expect

from toolbench.lab.models import Model

TYPICAL_SCENARIOS = ("happy_path", "missing_workspace_id", "type_error_recovery", "long_arguments_guard", "chat_only")


@dataclass(frozen=True)
class RunForm:
    """Entries of the launch form.

    Attributes:
        request_cap: the limit of requests; None for no limit.
    """

    models: tuple[str, ...]
    scenarios: tuple[str, ...] = ("happy_path",)
    profiles: tuple[str, ...] = ("default",)
    trials: int = 10
    request_cap: int | None = None


def fill_form(page: Page, run_form: RunForm) -> None:
    """Open the form and fill it in. Nothing is sent."""
    page.goto("/runs/new/")
    closed = page.locator("form.plan details:not([open]) > summary:visible")
    while closed.count():
        closed.first.click()
    for name in run_form.models:
        _find_checkbox(page, "models", str(Model.objects.get(name=name).pk)).check()
    for field, values in (("scenarios", run_form.scenarios), ("profiles", run_form.profiles)):
        for value in values:
            _find_checkbox(page, field, value).check()
    if len(run_form.profiles) > 1:
        page.get_by_label("Every profile with every model").check()
    page.get_by_label("Trials for each scenario").fill(str(run_form.trials))
    if run_form.request_cap is not None:
        page.get_by_label("Stop after requests").fill(str(run_form.request_cap))


def start_run(page: Page, run_form: RunForm) -> None:
    """Fill in the form, confirm paid requests, start the run and wait for its page."""
    fill_form(page, run_form)
    page.get_by_role("button", name="Start").click()
    agree = page.get_by_label("Send paid requests")
    expect(agree.or_(page.locator("#live"))).to_be_visible()
    if agree.is_visible():
        agree.check()
        page.get_by_role("button", name="Start").click()
    expect(page.locator("#live")).to_be_visible()


def wait_until_finished(page: Page, trials: int) -> None:
    """Wait until the run's page shows this number of finished trials."""
    expect(page.locator("[data-done]")).to_have_attribute("data-done", str(trials))


def wait_until_idle(page: Page) -> None:
    """Wait until the run's page stops polling: every trial in flight has ended and is counted."""
    expect(page.locator("#live:not([hx-get])")).to_be_visible()


def _find_checkbox(page: Page, name: str, value: str) -> Locator:
    return page.locator(f'input[name="{name}"][value="{value}"]')
