"""Workers on several hosts whose network is cut off or slow, or whose clocks are wrong.

`python -m benchmarks.hosts` plays every scenario, or the named ones, on one database and one broker. The exit code is 1
if something is wrong after a scenario, and 2 if a named scenario cannot be played on this machine.
"""

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path

from benchmarks.chaos.lab_client import LabClient
from benchmarks.chaos.provider import CountingProvider
from benchmarks.chaos.small_disk import enter_namespace
from benchmarks.hosts.network import HostNetwork, Server
from benchmarks.hosts.scenarios import SCENARIOS, WRONG_CLOCKS, HostsPlayer
from benchmarks.hosts.stack import HostsStack, has_libfaketime

HOSTS = 2  # besides the host of the servers


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hosts", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="scenario", help=f"one of {', '.join(SCENARIOS)} (default all)")
    parser.add_argument("--out", type=Path, help="file to which a JSON line is added for each scenario")
    arguments = parser.parse_args()
    if unknown := set(arguments.scenarios) - SCENARIOS.keys():
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    return arguments


def _play(names: list[str], out: Path | None) -> bool:
    """Play scenarios on one stack; return whether all of them ended without a fault."""
    with HostNetwork(HOSTS) as network:
        provider = CountingProvider(host=Server.PROVIDER.address)
        provider.start()
        with HostsStack(Path(tempfile.mkdtemp(prefix="tb-hosts-", dir="/tmp")), network) as stack:
            lab = LabClient(stack.environment)
            lab.ask("prepare")
            player = HostsPlayer(stack, network, lab, provider)
            records = []
            for name in names:
                records.append(player.play(name))
                print(json.dumps(records[-1]), flush=True)
                if out:
                    with out.open("a") as file:
                        file.write(json.dumps(records[-1]) + "\n")
            lab.stop()
        provider.stop()
    return not any(record["wrong"] for record in records)


def main() -> int:
    arguments = _read_arguments()
    names = arguments.scenarios or list(SCENARIOS)
    if WRONG_CLOCKS in names and not has_libfaketime():
        print(f"{WRONG_CLOCKS} is not played: libfaketime is missing (Debian: package libfaketime).", file=sys.stderr)
        if arguments.scenarios:
            return 2
        names.remove(WRONG_CLOCKS)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that every `with` block ends
    if not enter_namespace("benchmarks.hosts", "--net"):
        print("This machine allows no network namespace (unshare --net --mount).", file=sys.stderr)
        return 2
    return 0 if _play(names, arguments.out) else 1


if __name__ == "__main__":
    sys.exit(main())
