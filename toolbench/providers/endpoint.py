"""Address, key and settings of a model at a provider, as one value without a database row."""

from dataclasses import field
from urllib.parse import quote

from toolbench.engine.light_dataclass import light
from toolbench.engine.types import JsonObject


@light(frozen=True, slots=True)
class Timeouts:
    """Time limits in seconds; `deadline` limits the whole trial, back-off included."""

    connect: float = 10.0
    read: float = 120.0
    deadline: float = 600.0


MODEL_PLACEHOLDER = "{model}"


@light(frozen=True, slots=True)
class NetworkAccess:
    """Proxy and certificates with which a provider is reached, as company networks require them.

    Attributes:
        proxy: address of a proxy without user and password; "" for none.
        proxy_login: `user:password` for the proxy; "" for none.
        ca: certificates in PEM that are trusted besides those of this machine; "" for none.
        certificate: client certificate in PEM, with its chain; "" for none.
        certificate_key: private key of the client certificate in PEM, without a password.
    """

    proxy: str = ""
    proxy_login: str = field(default="", repr=False)
    ca: str = ""
    certificate: str = ""
    certificate_key: str = field(default="", repr=False)


DIRECT = NetworkAccess()


@light(frozen=True, slots=True)
class Endpoint:
    """Address, key and settings of one model at one provider.

    Attributes:
        key: API key, "" for none; it never appears in a repr.
        max_attempts: attempts per request, the first included.
        wire: name in engine/wire_formats/registry.py; it also decides which header carries the key.
        key_header: header that carries the bare key in place of the wire format's own; "" for that.
        api_prefix: part of the path before that of the wire format; MODEL_PLACEHOLDER in it stands for the model.
        query: query parameters of every address, such as `api-version=…`; "" for none.
        network: proxy and certificates.
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
    key_header: str = ""
    query: str = ""
    network: NetworkAccess = DIRECT

    def url(self, path: str) -> str:
        """Return the full address for `path`: base URL, prefix, path and query, without repeating the prefix.

        A path that begins with a slash is appended to the base URL without the prefix.
        """
        address = self._join(path)
        return f"{address}{'&' if '?' in address else '?'}{self.query}" if self.query else address

    def _join(self, path: str) -> str:
        base = self.base_url.rstrip("/")
        prefix = self.api_prefix.strip("/").replace(MODEL_PLACEHOLDER, quote(self.model, safe=""))
        if prefix and base.endswith("/" + prefix):
            base = base[: -len(prefix) - 1]
        within = "" if path.startswith("/") else prefix
        return "/".join(part for part in (base, within, path.lstrip("/")) if part)
