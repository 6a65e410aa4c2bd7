"""What is tried. `find`, `all`, `groups` and `select` are the way in."""

from toolbench.evals.scenarios.registry import all, find, groups, select

__all__ = ["all", "find", "groups", "select"]
