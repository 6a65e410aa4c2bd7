"""Screenshots of every page at two widths in both themes: `python -m benchmarks.shots LINK`.

LINK is a sign-in link of a running Toolbench (`make link`). Writes one PNG of each whole page, width and theme, and
prints the pages that are wider than their window. Without named paths, it takes every page of the navigation and one
page of each kind to which a list links, if there is one.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browsers import find_browser, list_chromium_flags

WIDTHS = {1440: 900, 390: 844}
THEMES = ("light", "dark")
START_PAGES = (
    "/", "/matrix/", "/matrix/?view=profile", "/matrix/?view=strategy", "/matrix/?view=bars",
    "/matrix/?scope=published", "/trials/", "/trials/?outcome=fail", "/failures/", "/failures/codes/", "/latency/",
    "/compare/", "/decide/", "/decide/recommendations/", "/decide/records/", "/trend/", "/runs/", "/runs/new/",
    "/demo/", "/demo/personas/", "/playground/",
    "/playground/?example=1", "/imported/", "/schedules/", "/scenarios/", "/cases/", "/cases/new/",
    "/cases/mcp/", "/cases/drafts/", "/cases/bring/", "/models/", "/profiles/", "/profiles/new/", "/presets/",
    "/presets/new/", "/policy/", "/formats/", "/compatibility/", "/metrics/", "/providers/", "/providers/new/",
    "/gateway/", "/gateway/new/", "/gateway/traces/", "/search/?q=a", "/help/", "/health/", "/settings/people/",
    "/settings/audit/", "/settings/retention/", "/settings/tokens/", "/settings/links/", "/sign-in/", "/api/v1/docs",
)  # fmt: skip
RUN, TRIAL, MODEL = r"^/runs/\d+/$", r"^/trials/\d+/", r"^/models/\d+/$"
STEPS = r"^/trials/\d+/\?(.*&)?view=steps"
PROVIDER_MODELS, PROVIDER = r"^/providers/\d+/models/$", r"^/providers/\d+/$"
GATEWAY_TRACE = r"^/gateway/traces/\d+/$"
ALIAS, CASE = r"^/gateway/\d+/$", r"^/cases/(?!new|mcp|drafts|bring)[\w-]+/$"
CONVERSATION = r"^/playground/[\w-]+/$"
PROFILE, PRESET = r"^/profiles/(?!new)[\w-]+/$", r"^/presets/(?!new)[\w-]+/$"
# Pages of rows that users create: patterns of their links, by the page that has the links. That page is given by its
# path, or by the pattern of a link that was found before.
LINKED_PAGES = {
    "/demo/": (RUN,),
    "/runs/": (RUN,),
    RUN: (r"^/runs/\d+/metrics/", r"^/runs/\d+/missing/", r"^/runs/\d+/repeat/", r"^/schedules/new/\?"),
    "/scenarios/happy_path/": (r"^/cases/new/\?",),
    "/trials/?outcome=fail&scope=all": (TRIAL,),
    TRIAL: (r"^/what-if/\?trial", STEPS),
    STEPS: (r"^/steps/\d+/(request|response)/$", r"^/steps/\d+/curl/$"),
    "/decide/": (r"^/decide/settings/\d+/$", r"^/gateway/promote/\?"),
    "/decide/records/": (r"^/decide/records/\d+/$",),
    "/playground/": (CONVERSATION,),
    CONVERSATION: (r"^/playground/[\w-]+/\d+/$",),
    "/imported/": (r"^/imported/jobs/\d+/$", r"^/imported/histories/\d+/$"),
    "/schedules/": (r"^/schedules/\d+/$",),
    "/scenarios/": (r"^/scenarios/[\w-]+/$",),
    "/cases/": (CASE,),
    CASE: (r"^/cases/[\w-]+/edit/$", r"^/cases/[\w-]+/delete/$"),
    "/models/": (MODEL,),
    MODEL: (r"^/models/\d+/settings/$", r"^/probes/\d+/$"),
    "/providers/": (PROVIDER_MODELS,),
    PROVIDER_MODELS: (PROVIDER,),
    PROVIDER: (r"^/providers/\d+/delete/$",),
    "/profiles/": (PROFILE,),
    PROFILE: (r"^/profiles/[\w-]+/delete/$",),
    "/presets/": (PRESET,),
    PRESET: (r"^/presets/[\w-]+/delete/$",),
    "/gateway/": (ALIAS,),
    ALIAS: (r"^/gateway/\d+/delete/$",),
    "/gateway/traces/": (GATEWAY_TRACE,),
    GATEWAY_TRACE: (r"^/gateway/traces/\d+/\?view=conversation",),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shots", description=__doc__)
    parser.add_argument("link", help="a sign-in link")
    parser.add_argument("addresses", nargs="*", help="only these paths, such as /matrix/")
    parser.add_argument("--folder", type=Path, default=Path("shots"), help="for the PNG files (default shots)")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=list_chromium_flags())
        take_shots(browser, options.link, options.addresses, options.folder)
        browser.close()


def take_shots(browser: Browser, link: str, addresses: Sequence[str], folder: Path) -> None:
    """Write the screenshots and print each page that is wider than its window or answers with an error."""
    first = browser.new_context()
    page = first.new_page()
    page.goto(link)
    base = re.sub(r"(https?://[^/]+).*", r"\1", link)
    paths = addresses or list_pages(page, base)
    state = first.storage_state()
    for theme in THEMES:
        for width, height in WIDTHS.items():
            context = browser.new_context(
                storage_state=state,
                viewport={"width": width, "height": height},
                color_scheme="dark" if theme == "dark" else "light",
            )
            page = context.new_page()
            for path in paths:
                _take_shot(page, f"{base}{path}", folder / f"{_name_file(path)}-{width}-{theme}.png")
            context.close()


def list_pages(page: Page, base: str) -> list[str]:
    """Return the paths of all pages of the navigation and of one page of each kind that exists.

    `page` is signed in; `base` is the address of the site without a path.
    """
    return [*START_PAGES, *_find_linked_pages(page, base)]


def _take_shot(page: Page, url: str, file: Path) -> None:
    response = page.goto(url)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=file, full_page=True)
    excess = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    status = response.status if response else 0
    if status >= 400 or excess > 0:
        print(f"{file.stem}: status {status}, {excess} px too wide")


def _find_linked_pages(page: Page, base: str) -> Iterator[str]:
    found: dict[str, str] = {}
    for place, patterns in LINKED_PAGES.items():
        if not (start := found.get(place, "" if place.startswith("^") else place)):
            continue
        page.goto(f"{base}{start}")
        paths = page.eval_on_selector_all("main a[href]", "all => all.map(link => link.pathname + link.search)")
        for pattern in patterns:
            if path := next((path for path in paths if re.search(pattern, path)), None):
                found[pattern] = path
                yield path
    if RUN in found:
        yield f"{found[RUN]}judgements/"  # linked only after trials were re-judged


def _name_file(path: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-")[:80] or "start"


if __name__ == "__main__":
    main()
