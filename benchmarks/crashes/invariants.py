"""Further invariants after a crash, for a database with the rows of one schedule."""

from collections.abc import Mapping

from django.db import connection

from benchmarks.chaos.invariants import Violation

# A trial ends at most once in an execution, and at most once more than it was retried.
_DOUBLED_QUERY = """
SELECT 0, format('trial %%s ended %%s times in execution %%s', trial_id, count(*), execution) FROM chaos_end
GROUP BY trial_id, execution HAVING count(*) > 1
UNION ALL
SELECT trial.run_id, format('trial %%s ended %%s times and was retried %%s times', trial.id, ends.count, errors_retried)
FROM lab_trial AS trial JOIN (SELECT trial_id, count(*) FROM chaos_end GROUP BY trial_id) AS ends
    ON ends.trial_id = trial.id WHERE ends.count > trial.errors_retried + 1
UNION ALL
SELECT min(id), format('schedule %%s has %%s runs for one due time', schedule_id, count(*)) FROM lab_run
WHERE schedule_id IS NOT NULL GROUP BY schedule_id HAVING count(*) > 1
"""

# A probe whose answer was cut off is inconclusive, since its request is not sent again.
_LOST_QUERY = """
SELECT 0, format('schedule %%s has no run', id) FROM lab_schedule AS schedule
WHERE NOT EXISTS (SELECT 1 FROM lab_run WHERE schedule_id = schedule.id) OR next_due_at < clock_timestamp()
UNION ALL
SELECT 0, format('probe %%s is %%s, ok %%s, with %%s exchanges: %%s', id, state, ok,
    (SELECT count(*) FROM lab_probeexchange WHERE probe_id = probe.id AND execution = probe.execution), sentence)
FROM lab_probe AS probe WHERE state <> 'done' OR lease IS NOT NULL
    OR ok IS NOT TRUE AND error <> 'answer_cut'
    OR NOT EXISTS (SELECT 1 FROM lab_probeexchange WHERE probe_id = probe.id AND execution = probe.execution)
"""

# Every run, with or without a limit. The provider counts the requests of all runs together.
_LIMITS_QUERY = """
SELECT coalesce(min(id), 0), format('%%s requests were sent, %%s are counted', %(sent)s, sum(requests_reserved))
FROM lab_run WHERE NOT EXISTS (SELECT 1 FROM lab_probe) HAVING sum(requests_reserved) < %(sent)s
UNION ALL
SELECT run.id, format('%%s tokens are counted, %%s are stored', tokens_used, stored.tokens) FROM lab_run AS run
JOIN LATERAL (SELECT coalesce(sum(coalesce(step.input_tokens, 0) + coalesce(step.output_tokens, 0)), 0) AS tokens
    FROM lab_step AS step JOIN lab_trial AS trial ON trial.id = step.trial_id WHERE trial.run_id = run.id) AS stored
    ON tokens_used <> stored.tokens
"""

_QUERY_BY_KIND: Mapping[str, str] = {"doubled": _DOUBLED_QUERY, "lost": _LOST_QUERY, "limit": _LIMITS_QUERY}

_TRACES_QUERY = "SELECT count(*), count(DISTINCT alias) FROM lab_gatewaytrace"


def find_trace_violations(expected: int) -> list[Violation]:
    """Return a violation if traces of the gateway are missing, and one if some are stored twice.

    Args:
        expected: least number of traces that must be stored; each has an alias of its own.
    """
    with connection.cursor() as cursor:
        cursor.execute(_TRACES_QUERY)
        stored, distinct = cursor.fetchone()
    lost = [Violation("lost", 0, f"{distinct} of {expected} traces are stored")] if distinct < expected else []
    return lost + (
        [Violation("doubled", 0, f"{stored - distinct} traces are stored twice")] if stored > distinct else []
    )


def find_other_violations(sent: int) -> list[Violation]:
    """Return the violations in the rows of the schedule.

    Args:
        sent: number of requests that the provider received.
    """
    found: list[Violation] = []
    with connection.cursor() as cursor:
        for kind, query in _QUERY_BY_KIND.items():
            cursor.execute(query, {"sent": sent})
            found += [Violation(kind, *row) for row in cursor.fetchall()]
    return found
