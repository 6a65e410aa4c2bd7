"""Tests of SQL queries as models write them: parsing, the checks, and the limits of a run."""

import pytest

from toolbench.evals.agents.sql import MAX_QUERY_CHARACTERS, SqlTable, build_query_checks, list_tables

TRIPS = SqlTable(
    {"line": "integer", "month": "text", "passengers": "integer"},
    ((1, "March", 5), (1, "March", 7), (2, "March", 9), (1, "May", 9), (2, "May", 4), (3, "May", 8)),
)
TABLES = {"trips": TRIPS, "stops": SqlTable({"stop": "text", "line": "integer"}, (("Mill", 1), ("Quay", 2)))}
# The number of copies of the first definition doubles at each of 50 levels.
CHAIN_OF_ALIASES = f"SELECT line a0{''.join(f', a{i}+a{i} a{i + 1}' for i in range(50))} FROM trips"
CHAIN_OF_SUBQUERIES = (
    f"WITH c0 AS (SELECT 1){''.join(f', c{i + 1} AS (SELECT 1 FROM c{i},c{i} b)' for i in range(50))} SELECT 1 FROM c50"
)
NESTED_SUBQUERIES = f"{'WITH c AS (' * 50}SELECT 1{') SELECT 1 FROM c,c b' * 50}"
REFERENCE = "SELECT SUM(passengers) FROM trips WHERE line = 1 AND month = 'March'"


def count_passed_checks(query: str) -> int:
    """Return how many of the four checks pass before the first that fails."""
    checks = build_query_checks(query, TABLES, REFERENCE)
    assert len(checks) == 4
    assert all(check.detail for check in checks if not check.ok)
    return [check.ok for check in (*checks, checks[-1])].index(False) if not checks[-1].ok else 4


@pytest.mark.parametrize(
    "query",
    [
        REFERENCE,
        f"{REFERENCE};",
        "select sum(t.passengers) as total from trips t where t.line = 1 and t.month = 'March'",
        "WITH one AS (SELECT * FROM trips WHERE line = 1) SELECT SUM(passengers) FROM one WHERE month = 'March'",
        'SELECT SUM("passengers") FROM "trips" WHERE "line" = 1 AND "month" = \'March\'',
        "SELECT CAST(SUM(passengers) AS FLOAT) FROM trips WHERE line = 1 AND month = 'March'",
    ],
)
def test_build_query_checks_equivalent_query_passes_all(query: str) -> None:
    assert count_passed_checks(query) == 4


@pytest.mark.parametrize(
    ("query", "rules"),
    [
        ("", 0),
        ("Here is the query you want", 0),
        ("DROP TABLE trips", 0),
        ("DELETE FROM trips", 0),
        ("PRAGMA table_info(trips)", 0),
        ("SELECT 1; SELECT 2", 0),
        ("SELECT * INTO other FROM trips", 0),
        ("(" * 900, 0),
        (f"SELECT {'1+' * MAX_QUERY_CHARACTERS}1", 0),
        ("SELECT SUM(passengers) FROM journeys", 1),
        ("SELECT SUM(people) FROM trips", 2),
        ("SELECT * GROUP BY 1", 2),
        ("SELECT SUM(passengers) FROM trips WHERE line = 1", 3),
        ("SELECT 12", 3),
        ("SELECT passengers FROM trips WHERE line = 1 AND month = 'March'", 3),
        ("SELECT load_extension('x')", 3),
        ("SELECT randomblob(1000000000)", 3),
        ("SELECT CAST(line AS BLOB) FROM trips", 3),
        ("SELECT '\ud800' FROM trips", 3),
        ("SELECT '\0' FROM trips", 3),
        (
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT COUNT(*) FROM c",
            3,
        ),
        ("SELECT COUNT(*) FROM trips, " + ", ".join(f"trips t{number}" for number in range(14)), 3),
    ],
)
def test_build_query_checks_wrong_query_fails_at_its_first_rule(query: str, rules: int) -> None:
    assert count_passed_checks(query) == rules


def test_build_query_checks_constant_query_fails_the_answer() -> None:
    assert count_passed_checks("SELECT 12") == 3
    assert count_passed_checks("SELECT 12 FROM trips WHERE line = 3") == 3


def test_list_tables_omits_common_table_expressions() -> None:
    assert list_tables("WITH one AS (SELECT * FROM Trips) SELECT * FROM one JOIN stops USING (line)") == (
        "stops",
        "trips",
    )
    assert list_tables("no query at all (") == ()


@pytest.mark.parametrize("query", [CHAIN_OF_ALIASES, CHAIN_OF_SUBQUERIES, NESTED_SUBQUERIES])
def test_build_query_checks_refuses_query_that_grows_exponentially(query: str) -> None:
    details = {check.detail for check in build_query_checks(query, TABLES, REFERENCE)}
    assert details == {"the query repeats its aliases and named subqueries too often"}
