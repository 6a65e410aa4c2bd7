"""What may be chosen for `make up`, and the sentence for what may not."""

import socket

import pytest

from toolbench.running.errors import RunnerError
from toolbench.running.options import StartOptions


def test_nothing_chosen_means_this_machine_only() -> None:
    choices = StartOptions.from_environment({})

    assert (choices.host, choices.base, choices.workers, choices.local_model) == (
        "127.0.0.1",
        "http://127.0.0.1:8000",
        1,
        True,
    )


def test_printed_address_uses_name_known_to_other_machines() -> None:
    choices = StartOptions.from_environment({"HOST": "0.0.0.0", "PORT": "80", "ALLOWED_HOSTS": "*, bench.example.org"})

    assert choices.base == "http://bench.example.org:80"
    assert "0.0.0.0" not in choices.site_hosts


def test_an_address_of_version_six_is_bracketed() -> None:
    assert StartOptions.from_environment({"HOST": "::1"}).base == "http://[::1]:8000"


@pytest.mark.parametrize(("name", "text"), [("PORT", "http"), ("PORT", "0"), ("PORT", "70000"), ("WORKERS", "-1")])
def test_a_number_that_is_none_gets_a_sentence(name: str, text: str) -> None:
    with pytest.raises(RunnerError, match=f"{name} must be a number"):
        StartOptions.from_environment({name: text})


def test_a_busy_port_gets_a_sentence_with_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            RunnerError, match=rf"127.0.0.1:{port} cannot be used \(Address already in use\): .* `make up PORT="
        ):
            StartOptions.from_environment({"PORT": str(port)}).listen()


def test_address_of_another_machine_gets_advice_about_address() -> None:
    for host in ("256.1.1.1", "192.0.2.1"):
        with pytest.raises(
            RunnerError, match=f"HOST={host} is not an address of this machine: leave HOST out"
        ) as refused:
            StartOptions.from_environment({"HOST": host}).listen()
        assert "PORT" not in str(refused.value)


def test_public_address_is_printed_and_its_host_answered() -> None:
    choices = StartOptions.from_environment(
        {"HOST": "0.0.0.0", "PORT": "9000", "TOOLBENCH_BASE": "https://bench.example.org/"}
    )

    assert choices.base == "https://bench.example.org"
    assert "bench.example.org" in choices.site_hosts


@pytest.mark.parametrize("text", ["bench.example.org", "https://", "https://a:b@x", "https://x/path", "https://x:port"])
def test_public_address_that_is_more_or_less_gets_a_sentence(text: str) -> None:
    with pytest.raises(RunnerError, match="TOOLBENCH_BASE must be the site's address"):
        StartOptions.from_environment({"TOOLBENCH_BASE": text})
