-- Return the newest gateway traces whose search text matches.
--
-- The texts are found first and sorted afterwards: in the order of their ids, the planner would read all newer texts
-- one by one for a word that only old traces have.
-- Part: matching selects the ids of all texts that match.
-- Parameters: those of matching; maximum number of ids.
-- Returns: ids, the newest first.
WITH found AS MATERIALIZED ({matching})
SELECT pk FROM found ORDER BY pk DESC LIMIT %s
