-- Store the search texts of trials or of gateway traces; earlier texts are replaced.
--
-- Words end at each character that is neither letter nor digit, so `/etc/my_file` has the words `etc`, `my` and `file`.
-- Parts: table: name of the table of search texts; key: name of its primary key.
-- Parameters: ids of the trials or traces; their texts in the same order.
-- Returns: nothing.
-- Locks: the search texts; the caller has locked the trials or traces.
INSERT INTO {table} ({key}, text, words)
SELECT id, content, to_tsvector('simple', regexp_replace(content, '[^[:alnum:]]+', ' ', 'g'))
FROM unnest(%s::bigint[], %s::text[]) AS row(id, content)
ON CONFLICT ({key}) DO UPDATE SET text = excluded.text, words = excluded.words
