-- Count the turns of a history by one of its columns. A turn that names no conversation is one of its own.
--
-- Parameters: history.
-- Parts: key: the column.
-- Returns: the key, counts, and the sums that Clustered takes.
SELECT {key}, sum(turns)::bigint AS turns, count(*) FILTER (WHERE named) AS conversations,
    sum(retried)::bigint AS retried, sum(unprobed)::bigint AS unprobed,
    count(*) FILTER (WHERE called > 0) AS faulty_m, sum(faulty) AS faulty_k, sum(called) AS faulty_n,
    sum(faulty * faulty) AS faulty_kk, sum(faulty * called) AS faulty_kn, sum(called * called) AS faulty_nn,
    count(*) FILTER (WHERE told > 0) AS good_m, sum(good) AS good_k, sum(told) AS good_n,
    sum(good * good) AS good_kk, sum(good * told) AS good_kn, sum(told * told) AS good_nn
FROM (
    SELECT {key}, conversation <> '' AS named, count(*) AS turns, sum(retries) AS retried,
        count(*) FILTER (WHERE probe_ok = false) AS unprobed, count(*) FILTER (WHERE called) AS called,
        count(*) FILTER (WHERE parse_error <> '') AS faulty, count(ok) AS told, count(*) FILTER (WHERE ok) AS good
    FROM lab_historyturn WHERE history_id = %s
    GROUP BY {key}, conversation, CASE WHEN conversation = '' THEN line END
) AS talks GROUP BY {key} ORDER BY {key}
