"""Address, key and settings of a model at a provider, as one value without a database row."""

from dataclasses import field
from urllib.parse import quote

from toolbench.engine.light_dataclass import light
from toolbench.engine.types import JsonObject


@light(frozen=True, slots=True)
class Timeouts:
    """Time limits in seconds.

    Attributes:
        connect: the longest time to open a connection.
        read: the longest wait for the next bytes of a response.
        deadline: the longest time of a whole trial, back-off included, but without waits for the request budget.
    """

    connect: float = 10.0
    read: float = 120.0
    deadline: float = 600.0


MODEL_PLACEHOLDER = "{model}"


def fill_api_prefix(api_prefix: str, model: str) -> str:
    """Return the API prefix with the percent-encoded name of the model in place of MODEL_PLACEHOLDER."""
    return api_prefix.replace(MODEL_PLACEHOLDER, quote(model, safe=""))


@light(frozen=True, slots=True)
class NetworkAccess:
    """Proxy and certificates for connections to a provider; company networks may require them.

    Attributes:
        proxy: address of a proxy without user and password; "" for none.
        proxy_login: `user:password` for the proxy; "" for none.
        ca: certificates in PEM that are trusted besides the default CAs (see `build_ssl_context`); "" for none.
        certificate: client certificate in PEM, with its chain; "" for none.
        certificate_key: private key of the client certificate in PEM, without a password; "" for none.
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
        base_url: address of the provider, with or without the API prefix.
        model: the provider's id of the model.
        api_prefix: part of the path before that of the wire format; MODEL_PLACEHOLDER in it stands for the model.
        key: API key, "" for none; it never appears in a repr.
        headers: extra headers, which replace Toolbench's own of the same name.
        timeouts: time limits.
        max_attempts: attempts per request, the first included; a policy may allow more for truncated answers.
        wire: name of the wire format in engine/wire_formats/registry.py; it decides which header carries the key if
            `key_header` is "".
        sends_seed: whether to send the trial's seed; true for simulated and local models.
        key_header: header that carries the key without a prefix; "" for the header of the wire format.
        query: query of every address, such as `api-version=2024-10-21`; "" for none.
        network: proxy and certificates.
    """

    base_url: str
    model: str
    api_prefix: str = "/v1"
    key: str = field(default="", repr=False)
    headers: JsonObject = field(default_factory=dict)
    timeouts: Timeouts = Timeouts()
    max_attempts: int = 3
    wire: str = "chat"
    sends_seed: bool = False
    key_header: str = ""
    query: str = ""
    network: NetworkAccess = DIRECT

    def build_url(self, path: str) -> str:
        """Build the full address for `path`: base URL, API prefix, path and query.

        The prefix is not repeated if the base URL ends with it. If `path` begins with a slash, the address has no
        prefix, even if the base URL ends with it.
        """
        address = self._join(path)
        return f"{address}{'&' if '?' in address else '?'}{self.query}" if self.query else address

    def _join(self, path: str) -> str:
        base = self.base_url.rstrip("/")
        prefix = fill_api_prefix(self.api_prefix, self.model).strip("/")
        if prefix and base.endswith("/" + prefix):
            base = base[: -len(prefix) - 1]
        used_prefix = "" if path.startswith("/") else prefix
        return "/".join(part for part in (base, used_prefix, path.lstrip("/")) if part)
