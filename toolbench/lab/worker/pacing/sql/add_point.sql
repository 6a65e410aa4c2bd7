-- Add a point to the chart of a provider's rate control, and delete the provider's points that are older than a week.
--
-- Parameters: provider; seconds: the time that the point covers; concurrency: the concurrency limit; in_flight: most
-- requests in flight; answers, rejections: their numbers; requests_per_minute: the limit, NULL for none.
WITH old AS (
    DELETE FROM lab_pacepoint WHERE provider_id = %(provider)s AND at < clock_timestamp() - interval '7 days'
)
INSERT INTO lab_pacepoint (provider_id, at, seconds, concurrency, in_flight, answers, rejections, requests_per_minute)
VALUES (%(provider)s, clock_timestamp(), %(seconds)s, %(concurrency)s, %(in_flight)s, %(answers)s, %(rejections)s,
    %(requests_per_minute)s)
