"""Where a model is reached: an address and a key inside one value, never a database row."""

from dataclasses import field

from toolbench.engine.light_dataclass import light
from toolbench.engine.types import JsonObject


@light(frozen=True, slots=True)
class Timeouts:
    """Seconds. `deadline` bounds the whole trial, back-off counted."""

    connect: float = 10.0
    read: float = 120.0
    deadline: float = 600.0


@light(frozen=True, slots=True)
class Endpoint:
    """`key` never shows in a repr. `url(path)` never doubles the prefix. `wire` is a name in
    engine/wire_formats/registry.py, and decides how the key is shown."""

    base_url: str
    model: str
    api_prefix: str = "/v1"
    key: str = field(default="", repr=False)
    headers: JsonObject = field(default_factory=dict)
    timeouts: Timeouts = Timeouts()
    max_attempts: int = 3
    wire: str = "chat"
    seeded: bool = False  # send the trial's seed (simulated and local models)

    def url(self, path: str) -> str:
        """The full address for `path`: base URL, prefix, path, with `/v1` never written twice. A path that begins with
        a slash stands beside the prefix, not below it."""
        base = self.base_url.rstrip("/")
        prefix = self.api_prefix.strip("/")
        if prefix and base.endswith("/" + prefix):
            base = base[: -len(prefix) - 1]
        within = "" if path.startswith("/") else prefix
        return "/".join(part for part in (base, within, path.lstrip("/")) if part)
