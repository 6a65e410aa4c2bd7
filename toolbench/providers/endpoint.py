"""Address, key and settings of a model at a provider, as one value without a database row."""

from dataclasses import field

from toolbench.engine.light_dataclass import light
from toolbench.engine.types import JsonObject


@light(frozen=True, slots=True)
class Timeouts:
    """Time limits in seconds; `deadline` limits the whole trial, back-off included."""

    connect: float = 10.0
    read: float = 120.0
    deadline: float = 600.0


@light(frozen=True, slots=True)
class Endpoint:
    """Address, key and settings of one model at one provider.

    Attributes:
        key: API key, "" for none; it never appears in a repr.
        max_attempts: attempts per request, the first included.
        wire: name in engine/wire_formats/registry.py; it also decides which header carries the key.
        seeded: whether to send the trial's seed (simulated and local models).
    """

    base_url: str
    model: str
    api_prefix: str = "/v1"
    key: str = field(default="", repr=False)
    headers: JsonObject = field(default_factory=dict)
    timeouts: Timeouts = Timeouts()
    max_attempts: int = 3
    wire: str = "chat"
    seeded: bool = False

    def url(self, path: str) -> str:
        """Return the full address for `path`: base URL, prefix and path, without repeating the prefix.

        A path that begins with a slash is appended to the base URL without the prefix.
        """
        base = self.base_url.rstrip("/")
        prefix = self.api_prefix.strip("/")
        if prefix and base.endswith("/" + prefix):
            base = base[: -len(prefix) - 1]
        within = "" if path.startswith("/") else prefix
        return "/".join(part for part in (base, within, path.lstrip("/")) if part)
