"""Reproducible random numbers: the same seed, model and purpose give the same draws on every machine."""

import hashlib
import random
import secrets


def build_random(seed: int | None, *purpose: object) -> random.Random:
    """Return a generator for one purpose.

    Without a seed, every call returns a generator with a random start.
    """
    if seed is None:
        return random.Random(secrets.randbits(64))
    text = "|".join(str(part) for part in (seed, *purpose))
    return random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))
