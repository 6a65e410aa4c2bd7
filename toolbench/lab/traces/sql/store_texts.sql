-- Store the search texts of trials.
--
-- Every character that is neither letter nor digit separates words, so that parts of paths and names are words.
-- Parameters: ids of trials; texts in the same order.
-- Locks: the search texts; the caller has locked the trials.
INSERT INTO lab_trialtext (trial_id, text, words)
SELECT id, content, to_tsvector('simple', regexp_replace(content, '[^[:alnum:]]+', ' ', 'g'))
FROM unnest(%s::bigint[], %s::text[]) AS row(id, content)
ON CONFLICT (trial_id) DO UPDATE SET text = excluded.text, words = excluded.words
