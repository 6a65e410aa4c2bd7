-- Insert the planned trials of a run. What differs between trials travels as arrays, what all have in common once.
--
-- Parameters: the common values, then the arrays.
-- Parts: columns: all columns of lab_trial; values: of each, a parameter or a column of `row`; arrays: a parameter for
-- each array with its type; differing: the columns of `row`.
INSERT INTO lab_trial ({columns}) SELECT {values} FROM unnest({arrays}) AS row({differing})
