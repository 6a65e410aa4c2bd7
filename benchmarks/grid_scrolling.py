"""Long tasks of the browser while a grid scrolls: `python -m benchmarks.grid_scrolling LINK [PATH]`.

LINK is a sign-in link of a running Toolbench (`make link`), PATH a page with a grid, such as `/matrix/?scope=demo`. For
150 configurations × 8 scenarios, first run `manage.py eval --provider Simulated --models all --scenarios all --yes`.

The rows of all pages are added to the first page, so that they scroll in one table. The mouse wheel scrolls the table
down, up and to both sides with the pointer over its cells, so that cards open. The benchmark prints the number of rows
and cells, and for each round the tasks of the main thread: their duration, and their CPU time, which other work on the
machine does not lengthen.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browsers import find_browser, list_chromium_flags

WHEEL_STEPS = 60  # in each direction
STEP_PIXELS = 160
STEP_PAUSE_MS = 16
STALL_MS = 50

JOIN_PAGES = """async () => {
  const body = document.querySelector("[data-grid] tbody");
  const parse = (text) => new DOMParser().parseFromString(text, "text/html");
  for (let page = document; ;) {
    const next = page.querySelector('.pager a[rel="next"]');
    if (!next) break;
    page = parse(await (await fetch(new URL(next.getAttribute("href"), location.href))).text());
    body.append(...page.querySelectorAll("[data-grid] tbody tr"));
  }
  return [body.rows.length, body.querySelectorAll(".c").length];
}"""
SCROLLED = "() => document.querySelector('.grid-box').scrollTop"
TRACED = ["toplevel", "disabled-by-default-devtools.timeline", "__metadata"]


@dataclass(frozen=True, slots=True)
class Scrolling:
    """Figures of one round.

    Attributes:
        pixels: height that was scrolled.
        cpu_ms: CPU time of each task of the page's main thread, the longest first.
        wall_ms: duration of each task, with the time in which other processes had the CPU, the longest first.
    """

    pixels: float
    cpu_ms: tuple[float, ...]
    wall_ms: tuple[float, ...]

    def __str__(self) -> str:
        stalls = [sum(task >= STALL_MS for task in tasks) for tasks in (self.cpu_ms, self.wall_ms)]
        return (
            f"{self.pixels:.0f} px down and back, {len(self.cpu_ms):,} tasks; of {STALL_MS} ms or more "
            f"CPU time {stalls[0]}, longest {self.cpu_ms[0]:.0f} ms; of duration {stalls[1]}, "
            f"longest {self.wall_ms[0]:.0f} ms"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grid_scrolling", description=__doc__)
    parser.add_argument("link", help="a sign-in link")
    parser.add_argument(
        "path", nargs="?", default="/matrix/?scope=demo", help="page with a grid (default /matrix/?scope=demo)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    options = parser.parse_args(arguments)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=list_chromium_flags())
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(options.link)
        page.goto(re.sub(r"(https?://[^/]+).*", r"\1", options.link) + options.path)
        page.wait_for_load_state("networkidle")
        rows, cells = page.evaluate(JOIN_PAGES)
        print(f"{rows} rows, {cells} cells")
        for number in range(1, options.rounds + 1):
            print(f"round {number}: {measure_scrolling(browser, page)}")
        browser.close()


def measure_scrolling(browser: Browser, page: Page) -> Scrolling:
    """Scroll the grid to its end and back, then to the sides, and return the tasks of the main thread."""
    box = page.locator(".grid-box").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + min(box["height"], 800) * 0.6)
    page.wait_for_timeout(500)
    browser.start_tracing(page=page, categories=TRACED)
    pixels = 0.0
    for x, y in ((0, STEP_PIXELS), (0, -STEP_PIXELS), (STEP_PIXELS, 0), (-STEP_PIXELS, 0)):
        for _ in range(WHEEL_STEPS):
            page.mouse.wheel(x, y)
            page.wait_for_timeout(STEP_PAUSE_MS)
        pixels = max(pixels, page.evaluate(SCROLLED))
    tasks = list_main_tasks(json.loads(browser.stop_tracing())["traceEvents"])
    cpu, wall = (tuple(sorted((task.get(name, 0) / 1000 for task in tasks), reverse=True)) for name in ("tdur", "dur"))
    return Scrolling(pixels, cpu, wall)


def list_main_tasks(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the tasks of the main thread of the renderer with the most tasks."""
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    tasks = [event for event in events if event["name"] == "RunTask" and (event["pid"], event["tid"]) in threads]
    ((pid, _),) = Counter(task["pid"] for task in tasks).most_common(1)
    return [task for task in tasks if task["pid"] == pid]


if __name__ == "__main__":
    main()
