-- Read one page of the newest trials of a filter in the requested order, and count the newest trials by the values of
-- each facet.
--
-- Parts: newest selects the newest trials, one more than are counted, with the columns that are read here and sorted
-- by; ordering is the ORDER BY clause.
-- Parameters: those of newest; maximum number of counted trials; size of the page; number of trials before the page.
-- Returns: one row with the number of trials of newest, the ids of the page, and a JSON array of counts, or null
-- without trials. Each count is an array of outcome or state, scenario, cause, model, profile, strategy and number of
-- trials. Of the values before the number, one is set and the others are null; a count of one configuration has model,
-- profile and strategy set instead.
WITH newest AS MATERIALIZED ({newest}),
counted AS MATERIALIZED (SELECT * FROM newest ORDER BY id DESC LIMIT %s),
facets AS (
    SELECT found.mark, found.scenario, found.cause, found.config_id, count(*) AS trials
    FROM (
        SELECT CASE state WHEN 'done' THEN outcome ELSE state END AS mark, scenario, cause, config_id FROM counted
    ) AS found
    GROUP BY GROUPING SETS ((found.mark), (found.scenario), (found.cause), (found.config_id))
)
SELECT
    (SELECT count(*) FROM newest),
    ARRAY(SELECT id FROM counted ORDER BY {ordering} LIMIT %s OFFSET %s),
    (
        SELECT json_agg(json_build_array(
            facets.mark, facets.scenario, facets.cause, config.model_name, config.profile, config.strategy,
            facets.trials
        ))
        -- LIMIT lets the planner look up each configuration instead of reading all of them.
        FROM facets LEFT JOIN LATERAL (
            SELECT model_name, profile, strategy FROM lab_runconfig WHERE id = facets.config_id LIMIT 1
        ) AS config ON true
    )
