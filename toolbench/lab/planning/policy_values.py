"""The values of a resolved policy, under the keys that its origins use."""

from typing import Any

from toolbench.engine.policy.layered_key import iterate_leaves
from toolbench.engine.types import JsonObject


def flatten_policy(policy: JsonObject) -> dict[str, Any]:
    """Return every setting by its name.

    Elements of lists (`name[0]`) and leaves of objects (`name.leaf`) stand beside them.
    """
    found = dict(policy)
    for name, value in policy.items():
        if isinstance(value, list):
            found |= {f"{name}[{place}]": item for place, item in enumerate(value)}
        elif isinstance(value, dict):
            found |= {f"{name}.{leaf}": item for leaf, item in iterate_leaves(value)}
    return found
