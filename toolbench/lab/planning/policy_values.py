"""The values of a resolved policy under the keys that its origins use, and a hash of them."""

import hashlib
import json
from typing import Any

from toolbench.engine.policy.layered_key import iterate_leaves
from toolbench.engine.policy.settings import Policy, policy_to_json
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


def hash_policy(policy: Policy) -> str:
    """Return a hash that is equal for equal settings, whatever their layers."""
    return hashlib.sha256(json.dumps(policy_to_json(policy), sort_keys=True).encode()).hexdigest()
