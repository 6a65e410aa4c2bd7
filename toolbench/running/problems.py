"""What can go wrong while starting, said in one sentence."""


class Problem(Exception):
    """One sentence for the person at the terminal: what is wrong and what to do."""
