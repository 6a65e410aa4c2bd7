-- Select the trials whose bodies are due by rules of retention, in the order of their ids.
--
-- The kind of a trial is that of the first condition of the CASE that it meets. Pinned trials are left out: trials with
-- a note, a label or a human verdict, and trials of a run that keeps its bodies, is in the baseline of a schedule or
-- confirms a decision. Nothing pins the trials of a deleted run. Trials that were never executed have no bodies.
-- Parts: columns: the selected columns; tail: limit and lock, or nothing.
-- Parameters: kinds, days: the rules; after: only trials with a greater id are selected.
-- Locks: as in the tail.
SELECT {columns}
FROM lab_trial AS trial
JOIN lab_run AS run ON run.id = trial.run_id
JOIN unnest(%(kinds)s::text[], %(days)s::int[]) AS rule(kind, days) ON rule.kind = CASE
    WHEN run.deleted_at IS NOT NULL THEN 'deleted'
    WHEN run.simulated THEN 'simulated'
    WHEN run.imported THEN 'imported'
    WHEN trial.outcome = 'pass' THEN 'passed'
    WHEN trial.outcome = 'fail' THEN 'failed'
    ELSE 'other'
END
WHERE trial.id > %(after)s AND trial.state = 'done' AND trial.execution > 0 AND trial.bodies_removed_at IS NULL
    AND coalesce(
        run.deleted_at, CASE WHEN run.imported THEN run.created_at END, trial.finished_at, run.created_at
    ) < clock_timestamp() - rule.days * interval '1 day'
    AND (run.deleted_at IS NOT NULL OR NOT (
        run.keeps_bodies OR trial.label <> '' OR trial.note <> ''
        OR EXISTS (SELECT 1 FROM lab_humanverdict AS human WHERE human.trial_id = trial.id)
        OR EXISTS (SELECT 1 FROM lab_schedule_baseline_runs AS baseline WHERE baseline.run_id = run.id)
        OR EXISTS (SELECT 1 FROM lab_decisionrecord AS record WHERE record.confirmation_id = run.id)
    ))
ORDER BY trial.id
{tail}
