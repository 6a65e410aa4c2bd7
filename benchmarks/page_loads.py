"""Weight and loading time of every page in Chromium: `python -m benchmarks.page_loads LINK [PATH ...]`.

LINK is a sign-in link of a running Toolbench (`make link`). Without paths, it takes the pages that `benchmarks.shots`
takes. Each page is loaded several times with an empty cache, as on a first visit, and then with the cache of that
visit. Prints a row for each page: kilobytes that were received, requests, and milliseconds until the page is ready
(the `load` event, and until then all its scripts have run), medians. The last row has the median and the maximum over
all pages.
"""

import argparse
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from playwright.sync_api import Browser, Page, StorageState, sync_playwright

from benchmarks.shots import list_pages
from tests.browsers import find_browser, list_chromium_flags

_READ_LOAD = """() => {
  const entries = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  return [entries.reduce((sum, entry) => sum + entry.transferSize, 0),
    entries.filter((entry) => entry.transferSize > 0).length, entries[0].loadEventEnd];
}"""


@dataclass(frozen=True, slots=True)
class PageLoad:
    """One load of a page; cached files weigh nothing.

    Attributes:
        kilobytes: kilobytes received, with headers and after compression.
        requests: number of answers that were received.
        ready_ms: milliseconds from the start of the navigation to the end of the `load` event.
    """

    kilobytes: float
    requests: float
    ready_ms: float


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page_loads", description=__doc__)
    parser.add_argument("link", help="a sign-in link")
    parser.add_argument("paths", nargs="*", help="only these paths, such as /matrix/")
    parser.add_argument("--repeats", type=int, default=3, help="loads of each page with and without cache (default 3)")
    options = parser.parse_args(arguments)
    base = re.sub(r"(https?://[^/]+).*", r"\1", options.link)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=list_chromium_flags())
        page = browser.new_page()
        page.goto(options.link)
        paths = options.paths or list_pages(page, base)
        state = page.context.storage_state()
        print("| page | first visit: kB | requests | ready, ms | with cache: kB | requests | ready, ms |")
        print("|---|---|---|---|---|---|---|")
        rows = [_measure_page(browser, state, base, path, options.repeats) for path in paths]
        browser.close()
    for name, combine in (("median", statistics.median), ("maximum", max)):
        _print_row(
            name, [PageLoad(*(combine(values) for values in _get_columns(row))) for row in zip(*rows, strict=True)]
        )


def _get_columns(loads: Sequence[PageLoad]) -> list[list[float]]:
    return [
        [load.kilobytes for load in loads],
        [load.requests for load in loads],
        [load.ready_ms for load in loads],
    ]


def _measure_page(browser: Browser, state: StorageState, base: str, path: str, repeats: int) -> list[PageLoad]:
    """Print the row of a page, and return its medians on a first visit and with the cache of that visit."""
    first_visits, later_visits = [], []
    for _ in range(repeats):
        context = browser.new_context(storage_state=state)
        page = context.new_page()
        first_visits.append(_load_page(page, f"{base}{path}"))
        later_visits.append(_load_page(page, f"{base}{path}"))
        context.close()
    medians = [PageLoad(*map(statistics.median, _get_columns(loads))) for loads in (first_visits, later_visits)]
    _print_row(f"`{path}`", medians)
    return medians


def _load_page(page: Page, url: str) -> PageLoad:
    page.goto(url, wait_until="load")
    page.wait_for_function("performance.getEntriesByType('navigation')[0].loadEventEnd > 0")
    received, requests, ready_ms = page.evaluate(_READ_LOAD)
    return PageLoad(received / 1000, requests, ready_ms)


def _print_row(name: str, loads: Sequence[PageLoad]) -> None:
    figures = (f"{load.kilobytes:.0f} | {load.requests:.0f} | {load.ready_ms:.0f}" for load in loads)
    print(f"| {name} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
