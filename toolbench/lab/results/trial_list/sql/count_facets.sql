-- Count trials by the values of each field of the facets.
--
-- Parameters: ids of trials.
-- Returns: the field's name, a value, the number of trials; one row for each value of each field.
SELECT
    CASE
        WHEN grouping(found.outcome) = 0 THEN 'outcome'
        WHEN grouping(found.model) = 0 THEN 'model'
        WHEN grouping(found.profile) = 0 THEN 'profile'
        WHEN grouping(found.strategy) = 0 THEN 'strategy'
        WHEN grouping(found.scenario) = 0 THEN 'scenario'
        ELSE 'cause'
    END,
    coalesce(found.outcome, found.model, found.profile, found.strategy, found.scenario, found.cause),
    count(*)
FROM (
    SELECT
        CASE trial.state WHEN 'done' THEN trial.outcome ELSE trial.state END AS outcome,
        config.model_name AS model,
        config.profile AS profile,
        config.strategy AS strategy,
        trial.scenario AS scenario,
        trial.cause AS cause
    FROM lab_trial AS trial JOIN lab_runconfig AS config ON config.id = trial.config_id
    WHERE trial.id = ANY(%s)
) AS found
GROUP BY GROUPING SETS (
    (found.outcome), (found.model), (found.profile), (found.strategy), (found.scenario), (found.cause)
)
ORDER BY 1, 3 DESC, 2
