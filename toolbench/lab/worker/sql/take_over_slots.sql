-- Count trials in the slots that they took over from trials whose end is stored in the same transaction.
--
-- Parameters: ids of the trials, their leases.
-- Locks: trials; call it before cells are locked.
UPDATE lab_trial AS trial SET backing_off = false FROM unnest(%s::bigint[], %s::uuid[]) AS successor(id, lease)
WHERE trial.id = successor.id AND trial.lease = successor.lease AND trial.state = 'running'
