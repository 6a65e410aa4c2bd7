-- Reserve the times of the next `requests` requests of a provider.
--
-- Each of the two limits, of requests and of tokens per minute, has its own times. The first one follows the last
-- reserved time of its limit after one interval, but is not before now.
-- Parameters: provider; requests; request_seconds, token_seconds: the interval of each limit: seconds between two
-- requests, 0 for no limit.
-- Returns: seconds until the first request by each limit; no row if the provider was deleted.
-- Locks: the row.
UPDATE lab_providerpace AS pace SET
    next_request_at = greatest(next_request_at, now.at) + make_interval(secs => %(requests)s * %(request_seconds)s),
    next_token_at = greatest(next_token_at, now.at) + make_interval(secs => %(requests)s * %(token_seconds)s)
FROM (SELECT clock_timestamp() AS at) AS now WHERE provider_id = %(provider)s
RETURNING extract(epoch FROM next_request_at - now.at)::float8 - %(requests)s * %(request_seconds)s,
    extract(epoch FROM next_token_at - now.at)::float8 - %(requests)s * %(token_seconds)s
