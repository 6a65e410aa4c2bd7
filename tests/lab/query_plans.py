"""Plans of statements as PostgreSQL executed them, for tests of how their work grows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db import connection, transaction


def count_most_rows(sql: str, parameters: Mapping[str, Any] | Sequence[Any]) -> int:
    """Execute a statement and return the most rows that a part of its plan returned or threw away, over all loops.

    Statistics are made first: otherwise the plan depends on when PostgreSQL made them last. Indexes are used even if a
    table is so small that PostgreSQL would read it whole. Bitmap index scans are left out: they count old versions of a
    row too, the heap scan above them does not.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("ANALYZE lab_trial, lab_cell, lab_run, lab_step")
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + sql, parameters)
        (plan,) = cursor.fetchone()
        cursor.execute("SET LOCAL enable_seqscan = on")
    plans = json.loads(plan) if isinstance(plan, str) else plan
    nodes = _iter_nodes(plans[0]["Plan"])
    return max(_count_rows(node) for node in nodes if node["Node Type"] != "Bitmap Index Scan")


def _iter_nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _iter_nodes(child)


def _count_rows(node: dict[str, Any]) -> int:
    rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Join Filter", 0)
    return int(rows * node["Actual Loops"])
