from typing import Any

from benchmarks.crashes.table import render_table


def make_line(fault: str | None, *kinds: str, was_hit: bool = True, events: int = 9) -> dict[str, Any]:
    point = {"number": 1, "moment": "before", "fault": fault} if fault else None
    violations = [{"kind": kind, "run_id": 1, "text": ""} for kind in kinds]
    return {"kind": "fixed", "point": point, "events": events, "was_hit": was_hit, "violations": violations}


def test_render_table_counts_schedules_and_violations() -> None:
    lines = [make_line(None), make_line("kill"), make_line("kill", "lost", "lost", "cell"), make_line("cut", "queued")]
    rows = render_table(lines).splitlines()
    assert rows[2] == "| fixed | 9 | 3 | 2 | 1 | 0 | 1 | 0 | 1 | 0 | 1 |"
    assert rows[3] == "| all |  | 3 | 2 | 1 | 0 | 1 | 0 | 1 | 0 | 1 |"


def test_render_table_omits_schedule_that_ended_before_its_fault() -> None:
    assert render_table([make_line("kill", was_hit=False)]).splitlines()[2:] == [
        "| all |  | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |"
    ]
