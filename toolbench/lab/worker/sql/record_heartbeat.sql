-- Store that a process is alive, and how far the clock of its host is ahead of the database's.
--
-- Parameters: name, kind, host and pid of the process; loop_lag_ms: its event-loop lag; time: seconds since 1970 by the
-- clock of the host.
-- Locks: the row of the process.
INSERT INTO lab_process (name, kind, host, pid, loop_lag_ms, clock_offset_ms, seen_at)
VALUES (
    %(name)s, %(kind)s, %(host)s, %(pid)s, %(loop_lag_ms)s,
    (%(time)s - extract(epoch FROM clock_timestamp())::float8) * 1000,
    clock_timestamp()
)
ON CONFLICT (name) DO UPDATE SET
    seen_at = clock_timestamp(),
    loop_lag_ms = excluded.loop_lag_ms,
    clock_offset_ms = excluded.clock_offset_ms
