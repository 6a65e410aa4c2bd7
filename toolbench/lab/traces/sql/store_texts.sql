-- Store the search texts of trials or of gateway traces.
--
-- Every character that is neither letter nor digit separates words, so that parts of paths and names are words.
-- Parts: table: name of the table of search texts; key: name of its primary key.
-- Parameters: keys of the rows; texts in the same order.
-- Locks: the search texts; the caller has locked the rows.
INSERT INTO {table} ({key}, text, words)
SELECT id, content, to_tsvector('simple', regexp_replace(content, '[^[:alnum:]]+', ' ', 'g'))
FROM unnest(%s::bigint[], %s::text[]) AS row(id, content)
ON CONFLICT ({key}) DO UPDATE SET text = excluded.text, words = excluded.words
