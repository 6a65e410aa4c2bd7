"""Sentences about trials that a user added to a run or queued again."""

from django.template.defaultfilters import pluralize


def describe_retried(count: int) -> str:
    """Return the sentence about trials with an infrastructure error that were queued again."""
    return f"{count:,} trial{pluralize(count)} with infrastructure errors {pluralize(count, 'is,are')} queued again."


def describe_resumed(count: int) -> str:
    """Return the sentence about cancelled trials that were queued again."""
    trials = f"{count:,} cancelled trial{pluralize(count)} {pluralize(count, 'is,are')} queued again."
    return f"{trials} Requests already sent stay counted."


def describe_added(count: int) -> str:
    """Return the sentence about trials that were added to cells."""
    return f"{count:,} trial{pluralize(count)} added; {pluralize(count, 'it is,they are')} marked as added manually."
