"""Flattening of a policy to the keys of `ResolvedPolicy.origins`, and the policy hash."""

import hashlib
import json
from typing import Any

from toolbench.engine.policy.layered_key import iterate_leaves
from toolbench.engine.policy.settings import Policy, build_policy_json
from toolbench.engine.types import JsonObject


def flatten_policy(policy: JsonObject) -> dict[str, Any]:
    """Return every setting by its name.

    Elements of lists are also returned as `name[0]`, leaves of objects as `name.leaf`.
    """
    values = dict(policy)
    for name, value in policy.items():
        if isinstance(value, list):
            values |= {f"{name}[{index}]": item for index, item in enumerate(value)}
        elif isinstance(value, dict):
            values |= {f"{name}.{leaf}": item for leaf, item in iterate_leaves(value)}
    return values


def hash_policy(policy: Policy) -> str:
    """Return the SHA-256 of the settings as hexadecimal text.

    The hash does not depend on which layers set the settings.
    """
    return hashlib.sha256(json.dumps(build_policy_json(policy), sort_keys=True).encode()).hexdigest()
