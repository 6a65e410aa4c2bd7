-- Fragment: requests, tokens and cost that the columns of a trial leave out.
--
-- They belong to earlier executions, or to the present one if the columns have no requests, because the trial runs, was
-- requeued or ended with an internal error.
--
-- Needs: `trials`, with the columns of _COLUMNS in metrics/cost.py.
-- Parts: step_cost: the cost of a step, NULL if it is out of range; steps: a join of `trial` with its steps.
    SELECT trial.id, count(*) AS requests, count(*) FILTER (WHERE step.attempt > 1) AS retries,
        sum(step.input_tokens) AS input_tokens, sum(step.output_tokens) AS output_tokens,
        sum({step_cost}) AS cost
    FROM trials AS trial {steps}
    WHERE (trial.execution > 1 OR (trial.execution = 1 AND trial.requests = 0))
        AND step.kind = 'exchange' AND (step.execution < trial.execution OR trial.requests = 0)
    GROUP BY trial.id
