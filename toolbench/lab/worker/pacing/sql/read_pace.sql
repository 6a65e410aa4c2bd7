-- Read the state of the rate control of a provider, and create its row if needed.
--
-- Parameters: provider; concurrency: the concurrency limit of a new row.
-- Returns: the state as JSON text, and the present time in seconds since 1970; no row if the provider was deleted.
-- Locks: the row, until the transaction ends. An update that changes nothing locks a row that exists and returns it.
INSERT INTO lab_providerpace AS pace (provider_id, concurrency, held_until, next_request_at, next_token_at, state)
SELECT id, %(concurrency)s, clock_timestamp(), clock_timestamp(), clock_timestamp(), '{}'
FROM lab_provider WHERE id = %(provider)s
ON CONFLICT (provider_id) DO UPDATE SET concurrency = pace.concurrency
RETURNING state::text, extract(epoch FROM clock_timestamp())::float8
