-- Return the ids of the newest gateway traces whose search text matches.
--
-- The matching texts are found first and sorted afterwards. Otherwise PostgreSQL would read the texts in the order of
-- their ids, and for a word that only old traces have, it would read all newer texts.
-- Part: matching is a query for the ids of all texts that match.
-- Parameters: those of matching; maximum number of ids.
-- Returns: ids, the newest first.
WITH found AS MATERIALIZED ({matching})
SELECT pk FROM found ORDER BY pk DESC LIMIT %s
