"""Writes search texts anew, as the sweep does, and prints the CPU that they cost.

`python -m benchmarks.million.search_texts TRIALS`; the database is that of the environment. The texts are those of the
oldest trials that keep the bytes of their steps: a trial without bytes has no question and no arguments.
"""

import sys

import benchmarks.django_setup  # noqa: F401
from benchmarks.million.cpu_clock import CpuClock
from toolbench.lab.models import Trial
from toolbench.lab.traces.search_text import update_search_texts


def main() -> None:
    trials = int(sys.argv[1])
    update_search_texts(limit=sys.maxsize)  # what waits already is not measured
    whole = Trial.objects.filter(state=Trial.State.DONE, steps__body__isnull=False).order_by("pk").distinct()
    chosen = list(whole.values_list("pk", flat=True)[:trials])
    Trial.objects.filter(pk__in=chosen).update(text_stale=True)
    with CpuClock() as clock:
        written = update_search_texts(limit=sys.maxsize)
    print("| search texts | CPU ms a trial: Python | database | seconds |\n|---|---|---|---|")
    figures = (clock.python_ms / written, clock.database_ms / written)
    print(f"| {written} | {figures[0]:.2f} | {figures[1]:.2f} | {clock.wall_ms / 1000:.1f} |\n")


if __name__ == "__main__":
    main()
