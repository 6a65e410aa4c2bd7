from collections.abc import Iterator

import pytest

from toolbench.providers.scripted_server import ScriptedProvider


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    """A scripted provider that serves; give it its answers with `plays`."""
    with ScriptedProvider() as scripted:
        yield scripted
