"""The launch form, filled in and sent as a person does it."""

from dataclasses import dataclass

from playwright.sync_api import Locator, Page, expect

from toolbench.lab.models import Model

TYPICAL_SCENARIOS = ("happy_path", "missing_workspace_id", "type_error_recovery", "long_arguments_guard", "chat_only")


@dataclass(frozen=True)
class RunForm:
    """What is to be tried; a cap of None is none."""

    models: tuple[str, ...]
    scenarios: tuple[str, ...] = ("happy_path",)
    profiles: tuple[str, ...] = ("default",)
    trials: int = 10
    request_cap: int | None = None


def fill_form(page: Page, wish: RunForm) -> None:
    """Opens the form and fills it in; nothing is sent."""
    page.goto("/runs/new/")
    closed = page.locator("form.plan details:not([open]) > summary:visible")
    while closed.count():
        closed.first.click()
    for name in wish.models:
        _find_checkbox(page, "models", str(Model.objects.get(name=name).pk)).check()
    for field, values in (("scenarios", wish.scenarios), ("profiles", wish.profiles)):
        for value in values:
            _find_checkbox(page, field, value).check()
    if len(wish.profiles) > 1:
        page.get_by_label("Every profile with every model").check()
    page.get_by_label("Trials for each scenario").fill(str(wish.trials))
    if wish.request_cap is not None:
        page.get_by_label("Stop after requests").fill(str(wish.request_cap))


def start_run(page: Page, wish: RunForm) -> None:
    """Fills in the form, agrees to what may cost money, starts, and waits for the run's page."""
    fill_form(page, wish)
    page.get_by_role("button", name="Start").click()
    agree = page.get_by_label("Send paid requests")
    expect(agree.or_(page.locator("#live"))).to_be_visible()
    if agree.is_visible():
        agree.check()
        page.get_by_role("button", name="Start").click()
    expect(page.locator("#live")).to_be_visible()


def wait_until_finished(page: Page, trials: int) -> None:
    """Waits until the run's page says that so many trials are finished."""
    expect(page.locator("[data-done]")).to_have_attribute("data-done", str(trials))


def wait_until_idle(page: Page) -> None:
    """Waits until the run's page has no more to tell: what was in flight has ended and is counted."""
    expect(page.locator("#live:not([hx-get])")).to_be_visible()


def _find_checkbox(page: Page, name: str, value: str) -> Locator:
    return page.locator(f'input[name="{name}"][value="{value}"]')
