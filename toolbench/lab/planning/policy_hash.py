"""Hash of settings, to compare them."""

import hashlib
import json

from toolbench.engine.policy.settings import Policy, policy_to_json


def hash_policy(policy: Policy) -> str:
    """Return a hash that is equal for equal settings, whatever their layers."""
    return hashlib.sha256(json.dumps(policy_to_json(policy), sort_keys=True).encode()).hexdigest()
