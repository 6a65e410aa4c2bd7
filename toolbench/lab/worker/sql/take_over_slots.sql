-- Count trials in the slots that they took over from trials which the same transaction ends or requeues.
--
-- Parameters: ids of all these trials, of both kinds; ids of those that take over slots; their leases.
-- Locks: all these trials by id. renew_leases.sql locks trials in the same order, so the two cannot wait for each
-- other. Call it before other trials or cells are locked.
WITH locked AS (
    SELECT id FROM lab_trial WHERE id = ANY(%s::bigint[]) AND state = 'running' ORDER BY id FOR NO KEY UPDATE
)
UPDATE lab_trial AS trial SET backing_off = false FROM unnest(%s::bigint[], %s::uuid[]) AS successor(id, lease)
WHERE (SELECT count(*) FROM locked) > 0
    AND trial.id = successor.id AND trial.lease = successor.lease AND trial.state = 'running'
