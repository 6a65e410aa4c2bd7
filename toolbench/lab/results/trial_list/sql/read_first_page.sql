-- Read the first page of the newest trials of a filter in the requested order.
--
-- Parts: newest selects the newest trials, one more than are listed, with the columns of the order; columns is the
-- list of returned columns; ordering is the ORDER BY clause.
-- Parameters: those of newest; maximum number of listed trials, twice; maximum number of trials on the page.
-- Returns: a row for each trial of the page: the lowest id that is listed, or 0 if all matching trials are listed;
-- the columns of the order, of which the last is the id.
WITH newest AS MATERIALIZED ({newest}),
listed AS MATERIALIZED (SELECT * FROM newest ORDER BY id DESC LIMIT %s),
oldest AS (SELECT CASE WHEN (SELECT count(*) FROM newest) > %s THEN min(id) ELSE 0 END AS id FROM listed)
SELECT (SELECT id FROM oldest) AS oldest, {columns} FROM listed ORDER BY {ordering} LIMIT %s
