-- Select whether the provider has a free slot; true if it was deleted.
--
-- Parameters: provider; finished_leases: leases whose trials hold no slot; probes: whether running probes count.
-- Returns: one boolean.
SELECT coalesce((SELECT concurrency FROM lab_provider WHERE id = %(provider)s), 2147483647)
    > (SELECT count(*) FROM lab_trial WHERE state = 'running' AND provider_id = %(provider)s AND NOT backing_off
        AND lease <> ALL(%(finished_leases)s::uuid[]))
    + (SELECT count(*) FROM lab_probe WHERE %(probes)s AND state = 'running' AND provider_id = %(provider)s)
