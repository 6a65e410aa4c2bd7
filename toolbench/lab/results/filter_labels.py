"""Labels of the URL parameters of pages of results."""

import re

from toolbench.lab.results.compare.query import AXES, SIDE_LETTERS

_LABELS = {
    "scope": "Scope",
    "run": "Runs",
    "runs": "Runs",
    "after": "Time (from)",
    "before": "Time (to)",
    "upto": "Frozen",
    "metric": "Metric",
    "target": "Target",
    "view": "View",
    "look": "Problems counted",
    "by": "Split",
    "want": "Goal",
    "success": "End-to-end success",
    "within": "p95",
    "rows": "Rows shown",
    "points": "Detectable difference",
    "instances": "Instances shown",
    "kind": "Instances",
    "how": "Pairing",
    "sort": "Order",
    "search": "Query",
    "outcome": "Outcome",
    "cell": "Cell",
    "cells": "Cells",
    "configs": "Configurations",
    "alike": "Same settings",
    "group": "Scenario group",
    "scenario": "Scenario",
    "version": "Scenario version",
    "without": "Omitted scenario versions",
    "provider_kind": "Kind of provider",
    "tool_use_mode": "Tool-use mode",
    "instance_kind": "Kind of instances",
    "instance": "Instance",
    "failure_class": "Failure class",
    "cause": "Cause",
    "seen": "Cause seen",
    "cause_version": "Version of the causes",
    "signature": "Failure group by verdict",
    "cluster": "Failure group by cause",
    "place": "Path and turn",
    "path": "Path",
    "had": "Answers and retries",
    "label": "Label",
    "demo": "Scope",
    "imported": "Scope",
}
_SIDE_PARAMETER = re.compile(rf"([{SIDE_LETTERS}])_([a-z]+)")  # such as b_model, the model of the second side


def find_filter_label(name: str) -> str:
    """Return the label of a parameter; the name itself if it has none, such as a term of the query bar."""
    if match := _SIDE_PARAMETER.fullmatch(name):
        number = SIDE_LETTERS.index(match[1]) + 1
        side = f"Side {number}" if number > 1 else "Baseline"
        return f"{side}: {AXES.get(match[2], match[2])}"
    return _LABELS.get(name) or AXES.get(name, name)
