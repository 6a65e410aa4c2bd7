-- Select whether the provider has a free slot; true if it was deleted.
--
-- Parameters: provider; uncounted_leases: leases of trials that are not counted; probes: whether running probes count.
-- Parts: limit: the concurrency limit of `provider` with its `pace`.
-- Returns: one boolean.
SELECT coalesce((SELECT {limit} FROM lab_provider AS provider
        LEFT JOIN lab_providerpace AS pace ON pace.provider_id = provider.id
        WHERE provider.id = %(provider)s), 2147483647)
    > (SELECT count(*) FROM lab_trial WHERE state = 'running' AND provider_id = %(provider)s AND NOT backing_off
        AND lease <> ALL(%(uncounted_leases)s::uuid[]))
    + (SELECT count(*) FROM lab_probe WHERE %(probes)s AND state = 'running' AND provider_id = %(provider)s)
