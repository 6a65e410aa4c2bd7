-- Tell whether the provider has a free slot.
--
-- Parameters: provider; over: leases that hold no slot; probes: count running probes too.
-- Returns: one boolean.
SELECT coalesce((SELECT concurrency FROM lab_provider WHERE id = %(provider)s), 2147483647)
    > (SELECT count(*) FROM lab_trial WHERE state = 'running' AND provider_id = %(provider)s AND NOT backing_off
        AND lease <> ALL(%(over)s::uuid[]))
    + (SELECT count(*) FROM lab_probe WHERE %(probes)s AND state = 'running' AND provider_id = %(provider)s)
