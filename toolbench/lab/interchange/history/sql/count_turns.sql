-- Count the turns of a history by some of its columns. A turn without a conversation counts as a conversation with one
-- turn.
--
-- Parameters: id of the history.
-- Parts: key: the columns.
-- Returns: the key, counts, and the sums of ClusterSums over conversations: `faulty_` for parse errors among attempted
-- calls, `good_` for successes among known results.
SELECT {key}, sum(turns)::bigint AS turns, count(*) FILTER (WHERE named) AS conversations,
    sum(retried)::bigint AS retried, sum(unprobed)::bigint AS unprobed,
    count(*) FILTER (WHERE called > 0) AS faulty_m, sum(faulty) AS faulty_k, sum(called) AS faulty_n,
    sum(faulty * faulty) AS faulty_kk, sum(faulty * called) AS faulty_kn, sum(called * called) AS faulty_nn,
    count(*) FILTER (WHERE known > 0) AS good_m, sum(good) AS good_k, sum(known) AS good_n,
    sum(good * good) AS good_kk, sum(good * known) AS good_kn, sum(known * known) AS good_nn
FROM (
    SELECT {key}, conversation <> '' AS named, count(*) AS turns, sum(retries) AS retried,
        count(*) FILTER (WHERE probe_ok = false) AS unprobed, count(*) FILTER (WHERE called) AS called,
        count(*) FILTER (WHERE parse_error <> '') AS faulty, count(ok) AS known, count(*) FILTER (WHERE ok) AS good
    FROM lab_historyturn WHERE history_id = %s
    GROUP BY {key}, conversation, CASE WHEN conversation = '' THEN line END
) AS conversations_of_history GROUP BY {key} ORDER BY {key}
