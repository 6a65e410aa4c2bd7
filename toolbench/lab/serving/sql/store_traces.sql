-- Store traces of the gateway. Those that are stored already, because only the answer of an earlier call was lost, are
-- not changed.
--
-- Parameters: one JSON array of rows; then an array of values for each column with bodies, in the order of `place`.
-- Parts: typed: the columns of the rows with their types; names: the names of all columns; body_names: the names of the
-- columns with bodies; body_values: a parameter for each of these.
-- Returns: nothing.
-- Locks: none beyond those of the new rows.
INSERT INTO lab_gatewaytrace ({names})
SELECT {names} FROM json_to_recordset(%s::json) AS trace(place integer, {typed})
JOIN unnest({body_values}) WITH ORDINALITY AS body({body_names}, place) USING (place)
ON CONFLICT (id) DO NOTHING
