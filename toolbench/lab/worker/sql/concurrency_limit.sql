-- Expression: the concurrency limit of `provider`, which may be adaptive, with its row `pace`, which may be missing.
--
-- The first limit of an adaptive provider is FIRST_LIMIT in pacing/state.py.
CASE WHEN provider.adaptive THEN least(provider.concurrency, coalesce(pace.concurrency, 8)) ELSE provider.concurrency END
