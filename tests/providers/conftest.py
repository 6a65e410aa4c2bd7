from collections.abc import Iterator

import pytest

from toolbench.providers.scripted_server import ScriptedServer


@pytest.fixture
def provider() -> Iterator[ScriptedServer]:
    """A scripted provider that serves; give it its answers with `set_script`."""
    with ScriptedServer() as scripted:
        yield scripted
