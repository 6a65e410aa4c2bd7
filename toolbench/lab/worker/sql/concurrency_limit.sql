-- Expression: the concurrency limit of the row `provider`.
--
-- An adaptive limit comes from `pace`, the provider's row of lab_providerpace. Without such a row it is 8, which is
-- FIRST_LIMIT in pacing/state.py.
CASE WHEN provider.adaptive THEN least(provider.concurrency, coalesce(pace.concurrency, 8)) ELSE provider.concurrency END
