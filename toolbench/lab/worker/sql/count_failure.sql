-- Count a failure of a background job; one row for each job, provider and error.
--
-- Parameters: job; provider: an id or NULL; error: name of the exception's class; place: the failing function.
INSERT INTO lab_jobfailure AS failure (job, provider_name, error, place, count, first_at, last_at)
VALUES (%(job)s, coalesce((SELECT name FROM lab_provider WHERE id = %(provider)s), ''), %(error)s, %(place)s, 1,
    clock_timestamp(), clock_timestamp())
ON CONFLICT (job, provider_name, error) DO UPDATE SET
    count = failure.count + 1, place = excluded.place, last_at = clock_timestamp()
