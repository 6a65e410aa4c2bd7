-- Count trials in the slots that they took over from trials whose end is stored in the same transaction.
--
-- Parameters: ids of all these trials: those that take over slots, and those that end or are requeued; ids of those
-- that take over slots, their leases.
-- Locks: all these trials by id, so that renew_leases.sql, which locks them in the same order, can run at the same
-- time; call it before other trials or cells are locked.
WITH locked AS (
    SELECT id FROM lab_trial WHERE id = ANY(%s::bigint[]) AND state = 'running' ORDER BY id FOR NO KEY UPDATE
)
UPDATE lab_trial AS trial SET backing_off = false FROM unnest(%s::bigint[], %s::uuid[]) AS successor(id, lease)
WHERE (SELECT count(*) FROM locked) > 0
    AND trial.id = successor.id AND trial.lease = successor.lease AND trial.state = 'running'
