import importlib
from argparse import ArgumentTypeError

import pytest

from toolbench.providers.ready_line import parse_port


@pytest.mark.parametrize("text", ["0", "8001", "65535"])
def test_parse_port_returns_valid_port(text: str) -> None:
    assert parse_port(text) == int(text)


@pytest.mark.parametrize("text", ["65536", "-1", "http", "", "9" * 5000, "²"])
def test_parse_port_refuses_other_texts(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="a port is a whole number from 0 to 65535, not"):
        parse_port(text)


@pytest.mark.parametrize("module", ["toolbench.gateway", "toolbench.providers.simulated", "toolbench.providers.llama"])
def test_server_with_invalid_port_exits_with_one_sentence(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_error:
        importlib.import_module(f"{module}.__main__").main(["--port", "70000"])
    assert exit_error.value.code == 2
    assert "--port: a port is a whole number from 0 to 65535, not '70000'" in capsys.readouterr().err
