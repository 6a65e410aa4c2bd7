"""Scopes of the pages of results: which kind of results a page counts.

Simulated and imported runs, and published figures, are never counted together with a user's own runs, unless runs are
named.
"""

REAL = "real"  # runs of real providers
PUBLISHED = "published"
SIMULATED = "demo"
IMPORTED = "imported"
NAMED_RUNS = "runs"  # instead of a scope, in URLs of the matrix and of the decision page
# The labels on pages, in the order of the switch.
SCOPE_LABELS = {REAL: "My runs", PUBLISHED: "Published", SIMULATED: "Simulated", IMPORTED: "Imported"}
# The scopes of pages that cannot show every one of them: published figures have no trials, a comparison has no imported
# runs unless it names them, and a decision needs trials that can be repeated here.
TRIAL_SCOPES = (REAL, SIMULATED, IMPORTED)
COMPARE_SCOPES = (REAL, PUBLISHED, SIMULATED)
DECIDE_SCOPES = (REAL, SIMULATED)
