-- Add a point of a provider's chart, and delete its points of more than a week ago.
--
-- Parameters: provider; seconds; concurrency; in_flight; answers; rejections; requests_per_minute: a number or NULL.
WITH old AS (
    DELETE FROM lab_pacepoint WHERE provider_id = %(provider)s AND at < clock_timestamp() - interval '7 days'
)
INSERT INTO lab_pacepoint (provider_id, at, seconds, concurrency, in_flight, answers, rejections, requests_per_minute)
VALUES (%(provider)s, clock_timestamp(), %(seconds)s, %(concurrency)s, %(in_flight)s, %(answers)s, %(rejections)s,
    %(requests_per_minute)s)
