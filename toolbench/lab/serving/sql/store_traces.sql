-- Store traces of the gateway. A trace that an earlier call has stored is not changed: a call is repeated if the
-- database's answer to it was lost.
--
-- Parameters: one JSON array of rows, each with its number `place`, from 1; then, for each column with bodies, an array
-- of its values in the order of `place`.
-- Parts: typed: the columns of the JSON rows with their types; names: the names of all columns; body_names: the names
-- of the columns with bodies; body_values: a placeholder for each column with bodies.
-- Returns: nothing.
-- Locks: none beyond those of the new rows.
INSERT INTO lab_gatewaytrace ({names})
SELECT {names} FROM json_to_recordset(%s::json) AS trace(place integer, {typed})
JOIN unnest({body_values}) WITH ORDINALITY AS body({body_names}, place) USING (place)
ON CONFLICT (id) DO NOTHING
