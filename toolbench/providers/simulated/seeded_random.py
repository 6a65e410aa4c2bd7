"""Reproducible random numbers for simulated models."""

import hashlib
import random
import secrets


def build_random(seed: int | None, *purpose: object) -> random.Random:
    """Build a random generator.

    Args:
        seed: the trial's seed; None for a generator that is not reproducible.
        purpose: values such as the model and the turn. Equal seeds and purposes give equal numbers on every machine.
    """
    if seed is None:
        return random.Random(secrets.randbits(64))
    text = "|".join(str(part) for part in (seed, *purpose))
    return random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))
