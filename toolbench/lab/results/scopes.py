"""Scopes of the pages of results: which kind of results a page counts.

Simulated runs, imported runs and published figures are never counted together with runs of real providers, unless the
URL names the runs.
"""

REAL = "real"  # runs of real providers
PUBLISHED = "published"
SIMULATED = "demo"
IMPORTED = "imported"
NAMED_RUNS = "runs"  # instead of a scope, in URLs of the matrix and of the decision page
# The labels on pages, in the order of the switch.
SCOPE_LABELS = {REAL: "My runs", PUBLISHED: "Published", SIMULATED: "Simulated", IMPORTED: "Imported"}
# Some pages do not offer all scopes: published figures have no trials, a comparison has imported runs only if the URL
# names them, and a decision needs trials that can be repeated here.
TRIAL_SCOPES = (REAL, SIMULATED, IMPORTED)
COMPARE_SCOPES = (REAL, PUBLISHED, SIMULATED)
DECIDE_SCOPES = (REAL, SIMULATED)
