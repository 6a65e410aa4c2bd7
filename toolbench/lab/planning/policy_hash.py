"""Settings as one value to compare."""

import hashlib
import json

from toolbench.engine.policy.settings import Policy, policy_to_json


def hash_policy(policy: Policy) -> str:
    """Equal for equal settings, however they came about."""
    return hashlib.sha256(json.dumps(policy_to_json(policy), sort_keys=True).encode()).hexdigest()
