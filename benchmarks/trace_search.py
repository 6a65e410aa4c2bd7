"""Time of searches among many traces of the gateway: `python -m benchmarks.trace_search`.

It creates a database with traces and their search texts. For each search it prints the median and the longest time, and
the CPU of one call with the part of the database. The searches are for frequent and rare words, words of the oldest
traces, words that no trace has together, and quoted texts. `--folder` keeps the database; the next call with the same
folder only measures.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from django.db import connection

import benchmarks.django_setup  # noqa: F401
from benchmarks.million.cpu_clock import CpuClock
from benchmarks.stack import Stack
from toolbench.lab.results.site_search import search_site

# Few words are frequent and many are rare. Only the oldest tenth has the alias `retired`.
_INSERT_TRACES = """
INSERT INTO lab_gatewaytrace (alias, served_by, model_name, token_name, simulated, dialect, stream, at, status, code,
    sentence, path, calls, changes, requests, duration_ms, upstream_ms, text_stale)
SELECT CASE WHEN n <= %(count)s / 10 THEN 'retired' ELSE 'alias-' || n %% 7 END, '', 'vendor/model-' || n %% 40,
    'token-' || n %% 12, false, 'chat', false, clock_timestamp() - (%(count)s - n) * interval '2 s',
    CASE WHEN n %% 50 = 0 THEN 502 ELSE 200 END, CASE WHEN n %% 50 = 0 THEN 'invalid_tool_call' ELSE '' END,
    '', 'native', 1, '[]', 1, 5, 4, false
FROM generate_series(1, %(count)s) AS made(n)
"""
_INSERT_TEXTS = """
INSERT INTO lab_gatewaytracetext (trace_id, text, words)
SELECT id, content, to_tsvector('simple', regexp_replace(content, '[^[:alnum:]]+', ' ', 'g'))
FROM (
    SELECT trace.id, concat_ws(' ', alias, model_name, dialect, token_name, status, code) || E'\\n' || string_agg(
        'w' || substr(md5(floor(5000 * random() ^ 3)::text), 1, 3 + length % 5), ' '
    ) || E'\\nget_weather {"city": "City ' || trace.id % 9000 || '", "unit": "celsius"}' AS content
    FROM lab_gatewaytrace AS trace, generate_series(1, 40) AS word(length)
    GROUP BY trace.id
) AS made
"""
_SELECT_INDEXES = """
SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'lab_gatewaytracetext' AND indexdef LIKE '%USING gin%'
"""
_SEARCHES = (
    "",
    "weather",
    "alias-3 token-5",
    "retired",
    "retired alias-3",
    "retired token-5 502",
    "invalid_tool_call",
    "vendor",
    "w",
    "city 8123",
    '"ity": "City 8123"',
    '"celsius"',
    '"retired vendor/model-7 "',
    '"zzz qqq"',
    '"ther {"',
    '"alias-3 vendor/model-1 chat"',
    "nothinghasthisword",
    "get_weather celsius city 77 token-3",
)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parse_arguments(arguments)
    if options.inside:
        _create_traces(options.traces)
        _measure(options.repeats)
        return
    with Stack(options.folder) as stack:
        inside = ("--inside", "--traces", str(options.traces), "--repeats", str(options.repeats))
        print(stack.run_module("benchmarks.trace_search", *inside), end="")


def _create_traces(count: int) -> None:
    """Create the traces unless the database has them; create the indexes of their texts last."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM lab_gatewaytracetext")
        if cursor.fetchone() == (count,):
            return
        cursor.execute(_INSERT_TRACES, {"count": count})
        cursor.execute(_SELECT_INDEXES)
        indexes = cursor.fetchall()
        for name, _ in indexes:
            cursor.execute(f"DROP INDEX {name}")
        cursor.execute(_INSERT_TEXTS)
        cursor.execute("SET maintenance_work_mem = '512MB'")
        for _, definition in indexes:
            cursor.execute(definition)
        cursor.execute("VACUUM ANALYZE lab_gatewaytrace, lab_gatewaytracetext")


def _measure(repeats: int) -> None:
    print("| search | median, ms | longest, ms | CPU, ms | of the database, ms | hits |\n|---|---|---|---|---|---|")
    for search in _SEARCHES:
        times: list[float] = []
        with CpuClock() as clock:
            for _ in range(repeats):
                start = time.perf_counter()
                groups = search_site(f"source:gateway {search}")
                times.append(1000 * (time.perf_counter() - start))
        hits = sum(len(group.hits) for group in groups)
        cpu_ms, database_ms = (clock.python_ms + clock.database_ms) / repeats, clock.database_ms / repeats
        figures = f"{statistics.median(times):.0f} | {max(times):.0f} | {cpu_ms:.0f} | {database_ms:.0f}"
        print(f"| `{search}` | {figures} | {hits} |")


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trace_search", description="Times searches of traces.")
    parser.add_argument("--traces", type=int, default=1_000_000, help="default 1000000")
    parser.add_argument("--repeats", type=int, default=5, help="calls of each search (default 5)")
    parser.add_argument("--folder", type=Path, help="folder for the database, which is kept")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
