"""Functions and arguments from which the tests build tools of each framework."""

import asyncio
from typing import Any

from pydantic import BaseModel, Field


class SearchArguments(BaseModel):
    """Arguments of a search."""

    query: str = Field(description="What to look for")
    limit: int = 10


def double(number: int) -> dict[str, int]:
    """Double a number."""
    return {"number": 2 * number}


async def wait(seconds: int) -> str:
    """Wait."""
    await asyncio.sleep(0)
    return f"waited {seconds}"


def echo(**arguments: Any) -> object:
    """Return the arguments."""
    return arguments
