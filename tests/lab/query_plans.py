"""Plans of statements as PostgreSQL executed them, for tests of how their work grows."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    return _count_most_rows_of_plan(plan)


def count_most_rows_if_planned_early(sql: str, types: Mapping[str, str], fill: Callable[[], Mapping[str, Any]]) -> int:
    """Plan a statement on new tables, call `fill` and return the number of `count_most_rows` for that plan.

    A worker plans a statement once for each connection. In a new database, the tables are empty and without statistics
    then. Temporary tables of the same names are, too.

    Args:
        sql: the statement with named parameters.
        types: SQL types of the parameters by name.
        fill: stores rows and returns the parameters.
    """
    for number, name in enumerate(types, start=1):
        sql = sql.replace(f"%({name})s", f"${number}")
    with transaction.atomic(), connection.cursor() as cursor:
        for table in ("lab_trial", "lab_step"):
            cursor.execute(f"CREATE TEMPORARY TABLE {table} (LIKE public.{table} INCLUDING ALL) ON COMMIT DROP")
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        cursor.execute(f"PREPARE early ({', '.join(types.values())}) AS {sql}")
        cursor.execute(f"EXPLAIN EXECUTE early ({', '.join(['NULL'] * len(types))})")
        parameters = fill()
        values = [parameters[name] for name in types]
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE early ({', '.join(['%s'] * len(types))})", values)
        (plan,) = cursor.fetchone()
        cursor.execute("DEALLOCATE early")
    return _count_most_rows_of_plan(plan)


def _count_most_rows_of_plan(plan: Any) -> int:
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
