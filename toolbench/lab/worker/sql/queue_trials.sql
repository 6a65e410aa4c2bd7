-- Insert the planned trials of a run. Values that differ between trials are arrays; a value that all trials share is
-- one parameter.
--
-- Parameters: the shared values, then the arrays.
-- Parts: columns: all columns of lab_trial; values: for each column, a parameter or a column of `row`; arrays: a
-- parameter with its type for each array; differing: the columns of `row`.
INSERT INTO lab_trial ({columns}) SELECT {values} FROM unnest({arrays}) AS row({differing})
