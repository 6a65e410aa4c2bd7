-- Fragment: requests, retries, tokens and cost that the columns of a trial leave out; no row if they leave out nothing.
--
-- The columns leave out earlier executions. While the columns count no request, they leave out the present execution,
-- too: the trial is running, was requeued or ended with an internal error.
-- Needs: `trials`, with id, execution and requests.
-- Parts: step_cost: the cost of a step, NULL if it is out of range; steps: a join of `trial` with its steps.
    SELECT trial.id, count(*) AS requests, count(*) FILTER (WHERE step.attempt > 1) AS retries,
        sum(step.input_tokens) AS input_tokens, sum(step.output_tokens) AS output_tokens,
        sum({step_cost}) AS cost
    FROM trials AS trial {steps}
    WHERE (trial.execution > 1 OR (trial.execution = 1 AND trial.requests = 0))
        AND step.kind = 'exchange' AND (step.execution < trial.execution OR trial.requests = 0)
    GROUP BY trial.id
