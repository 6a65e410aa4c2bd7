"""Tests of SQL queries as models write them: parsing, the checks, and the limits of a run."""

import pytest

from toolbench.evals.agents.sql import MAX_QUERY_CHARACTERS, SqlTable, build_query_checks, list_tables

TRIPS = SqlTable(
    {"line": "integer", "month": "text", "passengers": "integer"},
    ((1, "March", 5), (1, "March", 7), (2, "March", 9), (1, "May", 9), (2, "May", 4), (3, "May", 8)),
)
TABLES = {"trips": TRIPS, "stops": SqlTable({"stop": "text", "line": "integer"}, (("Mill", 1), ("Quay", 2)))}
REFERENCE = "SELECT SUM(passengers) FROM trips WHERE line = 1 AND month = 'March'"


def held(query: str) -> int:
    """How many of the four rules hold before the first that does not."""
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
def test_the_same_answer_in_other_words_is_right(query: str) -> None:
    assert held(query) == 4


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
        ("SELECT SUM(passengers) FROM trips WHERE line = 1", 3),
        ("SELECT 12", 3),
        ("SELECT passengers FROM trips WHERE line = 1 AND month = 'March'", 3),
        ("SELECT load_extension('x')", 3),
        ("SELECT randomblob(1000000000)", 3),
        (
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT COUNT(*) FROM c",
            3,
        ),
        ("SELECT COUNT(*) FROM trips, " + ", ".join(f"trips t{place}" for place in range(14)), 3),
    ],
)
def test_a_wrong_query_says_which_rule_it_breaks_first(query: str, rules: int) -> None:
    assert held(query) == rules


def test_an_answer_that_is_right_by_luck_is_not_right() -> None:
    assert held("SELECT 12") == 3
    assert held("SELECT 12 FROM trips WHERE line = 3") == 3


def test_read_tables_are_listed_without_common_table_expressions() -> None:
    assert list_tables("WITH one AS (SELECT * FROM Trips) SELECT * FROM one JOIN stops USING (line)") == (
        "stops",
        "trips",
    )
    assert list_tables("no query at all (") == ()
