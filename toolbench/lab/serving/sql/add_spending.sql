-- Add the costs of a batch to a month, unless the batch is stored already. Deleted providers are left out.
--
-- Parameters: key of the writer; number of the batch; first day of the month; four arrays with an element for each
-- provider: its id, dollars, number of requests with a known cost, number of requests with an unknown cost.
-- Returns: nothing.
-- Locks: the row of the writer, then the sums in the order of the provider ids. A new sum also locks its provider.
WITH claim AS (
    INSERT INTO lab_spendingwriter AS writer (key, last_batch, stored_at) VALUES (%s, %s, clock_timestamp())
    ON CONFLICT (key) DO UPDATE SET last_batch = excluded.last_batch, stored_at = excluded.stored_at
        WHERE writer.last_batch < excluded.last_batch
    RETURNING key
)
INSERT INTO lab_gatewayspending AS stored (provider_id, month, dollars, known, unknown)
SELECT provider.id, %s, given.dollars, given.known, given.unknown
FROM claim CROSS JOIN unnest(%s::bigint[], %s::float8[], %s::bigint[], %s::bigint[])
    AS given(provider_id, dollars, known, unknown)
JOIN lab_provider AS provider ON provider.id = given.provider_id
ORDER BY provider.id
ON CONFLICT (provider_id, month) DO UPDATE SET
    dollars = stored.dollars + excluded.dollars,
    known = stored.known + excluded.known,
    unknown = stored.unknown + excluded.unknown
