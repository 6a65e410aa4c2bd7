"""Finding out what an endpoint can do, by asking it."""
