"""`manage.py export_otlp RUN`: write a run or a trial to a file as spans in OTLP JSON, or send the spans."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import pluralize

from toolbench.lab.interchange.bundle.selection import BundleError
from toolbench.lab.interchange.otlp.send import PROTOBUF, PROTOCOLS, EndpointError, OtlpEndpoint, send_lines
from toolbench.lab.interchange.otlp.write import TrialNotFoundError, iter_run_lines, render_trial_line
from toolbench.lab.management.known_names import REFUSED_EXIT_CODE
from toolbench.lab.management.new_files import open_new_file


class Command(BaseCommand):
    """Command that exports trials as spans of OTLP."""

    help = (
        "Write the trials of a run as lines of OTLP JSON, or send them to an endpoint for OTLP over HTTP. Address, "
        "headers with a key, and protocol are read from OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS and _PROTOCOL."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("run", type=int, nargs="?", help="number of the run")
        parser.add_argument("--trial", type=int, help="number of a trial, instead of a run")
        parser.add_argument("--private", action="store_true", help="include private test cases of the run")
        parser.add_argument("--out", type=Path, metavar="FILE", help="a new file; default: toolbench-….otlp.jsonl")
        parser.add_argument("--send", action="store_true", help="send to an endpoint instead of writing a file")
        parser.add_argument(
            "--endpoint", metavar="URL", help="base address of the endpoint; /v1/traces is appended (implies --send)"
        )
        parser.add_argument(
            "--protocol", help="http/protobuf or http/json; default: OTEL_EXPORTER_OTLP_PROTOCOL, else http/protobuf"
        )

    def handle(self, *, run: int | None, trial: int | None, private: bool, **options: Any) -> None:
        """Write or send the spans and print the number of trials.

        Raises:
            CommandError: the arguments do not fit together, or the spans cannot be written or sent.
        """
        endpoint: str = options["endpoint"] or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
        should_send = options["send"] or options["endpoint"]
        if should_send and not endpoint:
            raise CommandError("Name the address with --endpoint URL.", returncode=REFUSED_EXIT_CODE)
        try:
            lines, default_name = _select_lines(run, trial, private=private)
            if should_send:
                self._send(lines, endpoint, _choose_protocol(options["protocol"]))
            else:
                self._write(lines, options["out"] or Path(default_name))
        except (BundleError, TrialNotFoundError, EndpointError, OSError) as error:
            raise CommandError(str(error), returncode=REFUSED_EXIT_CODE) from error

    def _send(self, lines: Iterable[bytes], address: str, protocol: str) -> None:
        url = f"{address.rstrip('/').removesuffix('/v1/traces')}/v1/traces"
        headers = _parse_headers(os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", ""))
        count = send_lines(lines, OtlpEndpoint(url, headers, report=self.stderr.write, protocol=protocol))
        self.stdout.write(f"{count:,} trial{pluralize(count)} sent.")

    def _write(self, lines: Iterable[bytes], path: Path) -> None:
        count = 0
        with open_new_file(path) as file:
            for line in lines:
                file.write(line)
                count += 1
        self.stdout.write(f"{count:,} trial{pluralize(count)} in {path}")


def _select_lines(run: int | None, trial: int | None, *, private: bool) -> tuple[Iterable[bytes], str]:
    """Return the lines of a run or of a trial, and the default name of their file.

    Raises:
        CommandError: neither a run nor a trial is given, or both are.
        BundleError: the run does not exist, or has only private test cases and `private` is False.
        TrialNotFoundError: the trial does not exist or has not ended.
    """
    if run is not None and trial is None:
        return iter_run_lines(run, private=private), f"toolbench-run-{run}.otlp.jsonl"
    if trial is not None and run is None:
        return [render_trial_line(trial)], f"toolbench-trial-{trial}.otlp.jsonl"
    raise CommandError("Name a run, or a trial with --trial.", returncode=REFUSED_EXIT_CODE)


def _choose_protocol(chosen: str | None) -> str:
    """Return the chosen protocol, else that of the environment, else PROTOBUF.

    Raises:
        CommandError: there is no such protocol.
    """
    protocol = chosen or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or PROTOBUF
    if protocol not in PROTOCOLS:
        raise CommandError(
            f"The protocol {protocol} is not supported. Choose {' or '.join(PROTOCOLS)} with --protocol.",
            returncode=REFUSED_EXIT_CODE,
        )
    return protocol


def _parse_headers(text: str) -> dict[str, str]:
    """Return the headers in a text such as `key=abc,team=red%20one`, in the form that OpenTelemetry defines."""
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}
