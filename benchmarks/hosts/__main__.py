"""Workers on several hosts that are cut off, slowed down and brought back, with clocks that are wrong.

`python -m benchmarks.hosts` plays every scenario, or those that are named, on one database and one broker. It exits
with 1 if something is wrong after a scenario."""

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
from benchmarks.hosts.scenarios import SCENARIOS, HostsPlayer
from benchmarks.hosts.stack import HostsStack, has_libfaketime

HOSTS = 2  # beside the first one


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hosts", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="scenario", help=f"of {', '.join(SCENARIOS)} (all)")
    parser.add_argument("--out", type=Path, help="file to which a line is added for each scenario")
    arguments = parser.parse_args()
    if unknown := set(arguments.scenarios) - SCENARIOS.keys():
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    return arguments


def _play(names: list[str], out: Path | None) -> bool:
    """Play scenarios on one stack; return whether nothing was wrong after any of them."""
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
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that every `with` block is left in order
    if not enter_namespace("benchmarks.hosts", "--net"):
        print("This machine allows no network namespace (unshare --net --mount).", file=sys.stderr)
        return 2
    names = arguments.scenarios or list(SCENARIOS)
    if "wrong_clocks" in names and not has_libfaketime():
        print("The clocks are not set wrong: libfaketime is missing (Debian: package faketime).")
        names.remove("wrong_clocks")
    return 0 if _play(names, arguments.out) else 1


if __name__ == "__main__":
    sys.exit(main())
