-- Count the turns of a history, grouped by columns of the turns.
--
-- Parameters: id of the history.
-- Parts: key: names of the columns, separated by commas.
-- Returns: the key, counts, and the sums of ClusterSums over conversations: `failed_` for parse errors among attempted
-- calls, `succeeded_` for successes among known results. In the sums, a turn without a conversation counts as a
-- conversation with one turn; in `conversations` it is not counted.
SELECT {key}, sum(turns)::bigint AS turns, count(*) FILTER (WHERE has_conversation) AS conversations,
    sum(retries)::bigint AS retries, sum(probes_failed)::bigint AS probes_failed,
    count(*) FILTER (WHERE called > 0) AS failed_m, sum(failed) AS failed_k, sum(called) AS failed_n,
    sum(failed * failed) AS failed_kk, sum(failed * called) AS failed_kn, sum(called * called) AS failed_nn,
    count(*) FILTER (WHERE known > 0) AS succeeded_m, sum(succeeded) AS succeeded_k, sum(known) AS succeeded_n,
    sum(succeeded * succeeded) AS succeeded_kk, sum(succeeded * known) AS succeeded_kn,
    sum(known * known) AS succeeded_nn
FROM (
    SELECT {key}, conversation <> '' AS has_conversation, count(*) AS turns, sum(retries) AS retries,
        count(*) FILTER (WHERE probe_ok = false) AS probes_failed, count(*) FILTER (WHERE called) AS called,
        count(*) FILTER (WHERE parse_error <> '') AS failed, count(ok) AS known, count(*) FILTER (WHERE ok) AS succeeded
    FROM lab_historyturn WHERE history_id = %s
    GROUP BY {key}, conversation, CASE WHEN conversation = '' THEN line END
) AS conversations_of_history GROUP BY {key} ORDER BY {key}
