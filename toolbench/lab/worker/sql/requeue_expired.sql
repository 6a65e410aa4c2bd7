-- Requeue running trials whose lease has expired, and count the loss. End those that lost their lease `max_losses`
-- times.
--
-- A trial without a slot was only waiting, so it cannot have killed its worker, and its loss is not counted.
-- Parameters: max_losses; sentence: of the trials that end; taxonomy: the version of the cause table.
-- Returns: the cell of each trial.
-- Locks: trials. A trial that another transaction has locked is skipped, even if that transaction only stores steps of
-- the trial (store_steps.sql). The next call requeues the trial.
WITH lost AS (
    SELECT id, lease_losses + (NOT backing_off)::int AS losses FROM lab_trial
    WHERE state = 'running' AND lease_until < clock_timestamp()
    FOR UPDATE SKIP LOCKED
), requeued AS (
    UPDATE lab_trial AS trial SET state = 'queued', queued_at = clock_timestamp(), lease = NULL, lease_until = NULL,
        backing_off = false, lease_losses = losses
    FROM lost WHERE trial.id = lost.id AND losses < %(max_losses)s RETURNING trial.cell_id
), ended AS (
    UPDATE lab_trial AS trial SET state = 'done', lease = NULL, lease_until = NULL, backing_off = false,
        lease_losses = losses, outcome = 'infra', "end" = 'PROVIDER_ERROR', failure_class = 'our_error',
        category = 'EXCEPTION', sentence = %(sentence)s, signature = 'our_error', cause = 'our_error',
        taxonomy = %(taxonomy)s, finished_at = clock_timestamp()
    FROM lost WHERE trial.id = lost.id AND losses >= %(max_losses)s RETURNING trial.cell_id
)
SELECT cell_id FROM requeued UNION ALL SELECT cell_id FROM ended
