"""Options of `make up`, all from environment variables."""

import errno
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from toolbench.installation import IS_WHEEL
from toolbench.running.errors import RunnerError

_START_WITH_PORT = "toolbench up --port " if IS_WHEEL else "make up PORT="
_MAX_DIGITS = 10
_WILDCARD_HOSTS = ("0.0.0.0", "::", "")


@dataclass(frozen=True, slots=True)
class StartOptions:
    """Options of `make up`.

    Attributes:
        host: address on which the site and the gateway listen; IPv6 addresses without brackets.
        port: port of the site.
        allowed_hosts: further names by which browsers may address the site; IPv6 addresses without brackets.
        workers: number of worker processes.
        local_model: whether to serve the local model.
        database_url: "" for the PostgreSQL that `make up` starts.
        redis_url: "" for the Valkey that `make up` starts.
        public_url: URL of the site behind a proxy, "" for none.
        max_silent_seconds: seconds without a sign of life after which a process is restarted.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    allowed_hosts: tuple[str, ...] = ()
    workers: int = 1
    local_model: bool = True
    database_url: str = ""
    redis_url: str = ""
    public_url: str = ""
    max_silent_seconds: int = 60

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "StartOptions":
        """Read the options from environment variables.

        Raises:
            RunnerError: a value is invalid.
        """
        return cls(
            host=environment.get("HOST", "").strip("[]") or "127.0.0.1",
            port=_parse_whole_number("PORT", environment.get("PORT", "") or "8000", 1, 65535),
            allowed_hosts=tuple(
                host.strip("[]") for host in environment.get("ALLOWED_HOSTS", "").replace(",", " ").split()
            ),
            workers=_parse_whole_number("WORKERS", environment.get("WORKERS", "") or "1", 0, 64),
            local_model=environment.get("LOCAL_MODEL", "1") != "0",
            database_url=environment.get("DATABASE_URL", ""),
            redis_url=environment.get("REDIS_URL", ""),
            public_url=_parse_public_url(environment.get("TOOLBENCH_BASE", "").strip().rstrip("/")),
            max_silent_seconds=_parse_whole_number(
                "TOOLBENCH_SILENT_SECONDS", environment.get("TOOLBENCH_SILENT_SECONDS", "") or "60", 1, 86_400
            ),
        )

    @property
    def listens_everywhere(self) -> bool:
        """Whether the site listens on all addresses of this machine."""
        return self.host in _WILDCARD_HOSTS

    @property
    def site_hosts(self) -> tuple[str, ...]:
        """Hosts by which browsers may address the site, in addition to 127.0.0.1, localhost and [::1].

        These are `allowed_hosts`, the host of `public_url`, and `host` unless it stands for all addresses. IPv6
        addresses are in brackets, as in the Host header.
        """
        public_hosts = [host] if (host := urlsplit(self.public_url).hostname) else []
        listening_hosts = [] if self.listens_everywhere else [self.host]
        return tuple(map(_bracket, (*self.allowed_hosts, *public_hosts, *listening_hosts)))

    @property
    def gateway_port(self) -> int:
        """Port of the gateway: the next one after that of the site; 1 if the site has port 65535."""
        return self.port % 65535 + 1

    @property
    def base(self) -> str:
        """URL at which people reach the site.

        It is `public_url` or, without one, an HTTP URL of the first allowed host (`host` if there is none) and `port`.
        An allowed host `*` is skipped, the leading dot of a domain such as `.example.org` is removed, and a `host` that
        stands for all addresses is replaced by 127.0.0.1.
        """
        if self.public_url:
            return self.public_url
        base_host = "127.0.0.1" if self.listens_everywhere else self.host
        name = next((host.lstrip(".") for host in self.allowed_hosts if host != "*"), base_host)
        return f"http://{_bracket(name)}:{self.port}"

    def listen(self) -> socket.socket:
        """Open the listening socket of the site.

        Keep it open while Toolbench runs, so that no other process gets the port when the web server is restarted.

        Raises:
            RunnerError: the host is not an address of this machine, or the port cannot be used.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        is_dual_stack = self.host == "::" and socket.has_dualstack_ipv6()
        try:
            return socket.create_server(
                (self.host, self.port), family=family, backlog=256, dualstack_ipv6=is_dual_stack
            )
        except UnicodeError as error:  # the name breaks the rules for host names
            raise self._build_host_error() from error
        except OSError as error:
            is_unknown_name = (error.errno or 0) < 0  # the codes of getaddrinfo are negative
            if is_unknown_name or error.errno == errno.EADDRNOTAVAIL:
                raise self._build_host_error() from error
            raise RunnerError(
                f"{self.host}:{self.port} cannot be used ({_describe_error(error)}): choose another with "
                f"`{_START_WITH_PORT}{self.port % 65535 + 1}`."
            ) from error

    def _build_host_error(self) -> RunnerError:
        return RunnerError(
            f"HOST={self.host} is not an address of this machine: leave HOST out to listen on 127.0.0.1, or "
            "use HOST=0.0.0.0 to listen on every address."
        )


def _bracket(host: str) -> str:
    """Return the host as in a URL, where an IPv6 address is in brackets."""
    return f"[{host}]" if ":" in host else host


def _describe_error(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


def _parse_public_url(text: str) -> str:
    """Return the URL, "" for none.

    Raises:
        RunnerError: the text is not an HTTP or HTTPS URL that consists of scheme, host and an optional port.
    """
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and "@" not in text
    except ValueError:
        is_valid = False
    if text and (not is_valid or text != f"{parts.scheme}://{parts.netloc}"):
        raise RunnerError(
            "TOOLBENCH_BASE must be the site's address without a path, such as https://bench.example.org."
        )
    return text


def _parse_whole_number(name: str, text: str, minimum: int, maximum: int) -> int:
    """Return the number in an environment variable.

    Raises:
        RunnerError: the text is not a number from `minimum` to `maximum`.
    """
    if not text.isdecimal() or len(text) > _MAX_DIGITS or not minimum <= int(text) <= maximum:
        raise RunnerError(f"{name} must be a whole number from {minimum} to {maximum}, not {text[:20]!r}.")
    return int(text)
