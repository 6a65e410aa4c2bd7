"""Options of `make up`, and the errors for invalid ones."""

import socket

import pytest

from toolbench.running.errors import RunnerError
from toolbench.running.options import StartOptions


def test_start_options_by_default_serve_this_machine_only() -> None:
    options = StartOptions.from_environment({})

    assert (options.host, options.base, options.workers, options.local_model) == (
        "127.0.0.1",
        "http://127.0.0.1:8000",
        1,
        True,
    )


def test_start_options_base_uses_a_host_known_to_other_machines() -> None:
    options = StartOptions.from_environment({"HOST": "0.0.0.0", "PORT": "80", "ALLOWED_HOSTS": "*, bench.example.org"})

    assert options.base == "http://bench.example.org:80"
    assert "0.0.0.0" not in options.site_hosts


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_start_options_bracket_an_ipv6_address(host: str) -> None:
    options = StartOptions.from_environment({"HOST": host})
    assert (options.host, options.base) == ("::1", "http://[::1]:8000")


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="one socket cannot serve both IPv6 and IPv4 here")
def test_start_options_listen_on_all_addresses_with_an_ipv6_host() -> None:
    with (
        StartOptions(host="::", port=0).listen() as server,
        socket.create_connection(("127.0.0.1", server.getsockname()[1]), timeout=5) as client,
    ):
        assert client.getpeername()[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PORT", "http"),
        ("PORT", "0"),
        ("PORT", "70000"),
        ("PORT", "8" * 5000),
        ("WORKERS", "-1"),
        ("TOOLBENCH_SILENT_SECONDS", "0"),
        ("TOOLBENCH_SILENT_SECONDS", "a minute"),
    ],
)
def test_start_options_refuse_an_invalid_number(name: str, text: str) -> None:
    with pytest.raises(RunnerError, match=f"{name} must be a whole number"):
        StartOptions.from_environment({name: text})


def test_start_options_listen_on_a_used_port_proposes_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as used_socket:
        port = used_socket.getsockname()[1]
        with pytest.raises(
            RunnerError, match=rf"127.0.0.1:{port} cannot be used \(Address already in use\): .* `make up PORT="
        ):
            StartOptions.from_environment({"PORT": str(port)}).listen()


def test_start_options_listen_on_a_foreign_host_advises_about_host() -> None:
    for host in ("256.1.1.1", "192.0.2.1", "my..host"):
        with pytest.raises(
            RunnerError, match=f"HOST={host} is not an address of this machine: leave HOST out"
        ) as raised:
            StartOptions.from_environment({"HOST": host}).listen()
        assert "PORT" not in str(raised.value)


def test_start_options_use_the_public_address_and_its_host() -> None:
    options = StartOptions.from_environment(
        {"HOST": "0.0.0.0", "PORT": "9000", "TOOLBENCH_BASE": "https://bench.example.org/"}
    )

    assert options.base == "https://bench.example.org"
    assert "bench.example.org" in options.site_hosts


@pytest.mark.parametrize("text", ["bench.example.org", "https://", "https://a:b@x", "https://x/path", "https://x:port"])
def test_start_options_refuse_an_invalid_public_address(text: str) -> None:
    with pytest.raises(RunnerError, match="TOOLBENCH_BASE must be the site's address"):
        StartOptions.from_environment({"TOOLBENCH_BASE": text})


@pytest.mark.parametrize(
    "environment",
    [
        {"HOST": "2001:db8::5"},
        {"HOST": "::", "ALLOWED_HOSTS": "2001:db8::5"},
        {"HOST": "::", "ALLOWED_HOSTS": "[2001:db8::5]"},
        {"HOST": "::", "TOOLBENCH_BASE": "http://[2001:db8::5]:8000"},
    ],
)
def test_start_options_site_hosts_have_ipv6_addresses_in_brackets(environment: dict[str, str]) -> None:
    options = StartOptions.from_environment(environment)

    assert options.base == "http://[2001:db8::5]:8000"
    assert options.site_hosts == ("[2001:db8::5]",)
