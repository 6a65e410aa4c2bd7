"""Scenarios: faults of hosts during runs, and checks of the runs afterwards."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from benchmarks.chaos.lab_client import LabClient
from benchmarks.chaos.lab_commands import CONCURRENCY
from benchmarks.chaos.provider import CountingProvider
from benchmarks.chaos.rounds import BUSY_QUERY
from benchmarks.chaos.stack import StackTimeoutError, wait_until
from benchmarks.hosts.network import Host, HostNetwork, Server
from benchmarks.hosts.stack import LEASE_SECONDS, HostsStack

TRIALS = 30
# A trial sends three requests; each further execution may send three more.
AMPLE_LIMIT, SCARCE_LIMIT = 12 * TRIALS, 2 * TRIALS
SHORT_CUT_SECONDS = 1.0
LONG_CUT_SECONDS = 2 * LEASE_SECONDS
DEAD_CUT_SECONDS = 45.0  # TCP connections fail after 30 s without an answer
SLOW_KILOBITS = 96
SLOW_ANSWER_SECONDS = 2.0  # a trial of three such answers takes longer than a lease
CLOCK_SECONDS = 60
_END_SECONDS = 600.0  # a busy machine runs a scenario many times slower

_HOSTS_QUERY = """
SELECT split_part(split_part(worker, '@', 2), ':', 1), count(*) FROM lab_trial WHERE run_id = ANY(%s)
    AND worker <> '' GROUP BY 1 ORDER BY 1
"""
_RUNNING_QUERY = """
SELECT split_part(split_part(worker, '@', 2), ':', 1), count(*) FROM lab_trial WHERE run_id = ANY(%s)
    AND state = 'running' GROUP BY 1
"""
_LOST_QUERY = """
SELECT count(*) FILTER (WHERE execution > 1), count(*) FROM lab_trial WHERE run_id = ANY(%s) AND execution > 0
"""
# All times of a trial have to be those of the database's clock, which sets the times of the run.
_ODD_TIMES_QUERY = """
SELECT count(*) FROM lab_trial AS trial JOIN lab_run AS run ON run.id = trial.run_id WHERE run.id = ANY(%s)
    AND trial.execution > 0 AND NOT (run.created_at <= trial.started_at AND trial.started_at <= trial.finished_at
    AND trial.finished_at <= clock_timestamp())
"""
_OFFSET_QUERY = """
SELECT clock_offset_ms / 1000 FROM lab_process WHERE kind = 'worker' AND host = %s ORDER BY seen_at DESC LIMIT 1
"""


@dataclass(slots=True)
class HostsPlayer:
    """Player of scenarios: launches runs on several hosts and checks them.

    Attributes:
        wrong: sentences about what is wrong with the runs of the current scenario.
        run_ids: names of the runs of the current scenario by id; "" for a run of a simulated model.
    """

    stack: HostsStack
    network: HostNetwork
    lab: LabClient
    provider: CountingProvider
    wrong: list[str] = field(default_factory=list)
    run_ids: dict[int, str] = field(default_factory=dict)
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    def play(self, name: str) -> dict[str, Any]:
        """Play a scenario; return its record, as JSON."""
        self.wrong, self.run_ids = [], {}
        began = time.monotonic()
        try:
            SCENARIOS[name](self)
            self.wait_for_ends()
        except StackTimeoutError as error:
            self.wrong.append(f"stuck: {error}")
        return {"scenario": name, "seconds": round(time.monotonic() - began, 1), **self._check()}

    def launch(self, *, limit: int = AMPLE_LIMIT, answer_seconds: float | None = None) -> None:
        """Launch a run.

        Args:
            limit: its request budget.
            answer_seconds: time that the provider takes for an answer; None for 0.4 s.
        """
        name = f"run-{next(self._numbers)}"
        base_url = self.provider.build_base_url(name, delay_seconds=answer_seconds)
        options = {"trials": TRIALS, "cap": limit, "poisoned": False, "stream": False}
        self.run_ids[self.lab.ask("launch_counted", base_url=base_url, **options)] = name

    def launch_until_used(self, *hosts: Host) -> None:
        """Launch runs, one after another, until each of these hosts has claimed a trial.

        Raises:
            StackTimeoutError: one has claimed none after _END_SECONDS.
        """
        deadline = time.monotonic() + _END_SECONDS
        while not {host.name for host in hosts} <= self.count_by_host().keys():
            if time.monotonic() > deadline:
                raise StackTimeoutError(f"not each of {', '.join(host.name for host in hosts)} claimed a trial")
            self.launch()
            self.wait_for_ends()

    def wait_for_ends(self) -> None:
        """Wait until every run of the scenario is finished or paused, and its cells are counted."""
        ids = list(self.run_ids)
        wait_until(lambda: self.stack.query(BUSY_QUERY, [ids]) == [(0,)], "the runs' ends", seconds=_END_SECONDS)

    def wait_for_busy_host(self) -> Host:
        """Wait until a host runs a trial, launch runs if none does, and return the host."""
        found: list[Host] = []

        def find() -> bool:
            running = dict(self.stack.query(_RUNNING_QUERY, [list(self.run_ids)]))
            found[:] = [host for host in self.network.hosts if running.get(host.name)]
            if not running:
                self.launch()
            return bool(found)

        wait_until(find, "a host with a trial", seconds=_END_SECONDS)
        return found[0]

    def count_by_host(self) -> dict[str, int]:
        """Return the number of trials by the host that claimed them last."""
        return dict(self.stack.query(_HOSTS_QUERY, [list(self.run_ids)]))

    def read_clock_offset(self, host: Host) -> float:
        """Return by how many seconds the clock of a host's worker is ahead, by its latest heartbeat."""
        rows = self.stack.query(_OFFSET_QUERY, [host.name])
        return float(rows[0][0]) if rows else 0.0

    def _check(self) -> dict[str, Any]:
        runs = [
            {"run_id": run_id, "sent": self.provider.count_sent(name) if name else None}
            for run_id, name in self.run_ids.items()
        ]
        checked = self.lab.ask("check", runs=runs)
        self.wrong += [f"{found['kind']}, run {found['run_id']}: {found['text']}" for found in checked["violations"]]
        if odd := self.stack.query(_ODD_TIMES_QUERY, [list(self.run_ids)])[0][0]:
            self.wrong.append(f"{odd} trials have times of another clock than the database's")
        ends = checked["ends"].values()
        outcomes = [outcome for end in ends for outcome in end["outcomes"].items()]
        if others := [f"{number} {outcome}" for outcome, number in outcomes if outcome not in ("pass", "queued")]:
            self.wrong.append(f"not every trial passed: {', '.join(others)}")
        return {
            "runs": len(runs),
            "trials": sum(number for _, number in outcomes),
            "hosts": self.count_by_host(),
            "executions_lost": sum(end["executions_lost"] for end in ends),
            "sent": sum(run["sent"] or 0 for run in runs),
            "reserved": sum(end["reserved"] for end in ends),
            "in_flight": max((self.provider.count_most_in_flight(name) for name in self.run_ids.values()), default=0),
            "wrong": self.wrong,
        }


def share(player: HostsPlayer) -> None:
    """Let all hosts work, without a fault."""
    player.launch_until_used(*player.network.hosts)
    _expect_limit(player)


def cut_short(player: HostsPlayer) -> None:
    """Cut a host off for less than a lease."""
    player.launch()
    _cut(player, SHORT_CUT_SECONDS)


def cut_long(player: HostsPlayer) -> None:
    """Cut a host off until its leases are lost, and reconnect it."""
    player.launch(limit=SCARCE_LIMIT)
    host = _cut(player, LONG_CUT_SECONDS)
    _expect_claims(player, host)


def cut_dead(player: HostsPlayer) -> None:
    """Cut a host off until its connections fail, and reconnect it."""
    player.launch()
    host = _cut(player, DEAD_CUT_SECONDS)
    _expect_claims(player, host)


def cut_from_database(player: HostsPlayer) -> None:
    """Cut a host off from the database alone, with answers so slow that a trial takes longer than a lease."""
    player.launch(answer_seconds=SLOW_ANSWER_SECONDS)
    host = _cut(player, LONG_CUT_SECONDS, servers=[Server.DATABASE])
    _expect_claims(player, host)


def cut_from_broker(player: HostsPlayer) -> None:
    """Cut a host off from the broker alone."""
    player.launch()
    host = _cut(player, LONG_CUT_SECONDS, servers=[Server.BROKER])
    _expect_claims(player, host)


def slow(player: HostsPlayer) -> None:
    """Limit the rate of a host's links."""
    host = player.network.hosts[0]
    host.limit_rate(SLOW_KILOBITS)
    player.launch_until_used(host)
    host.remove_rate_limit()
    _expect_limit(player)


def wrong_clocks(player: HostsPlayer) -> None:
    """Set the clock of one host ahead and that of another back; then cut one of them off."""
    offsets = dict(zip(player.network.hosts, (CLOCK_SECONDS, -CLOCK_SECONDS), strict=True))
    for host, seconds in offsets.items():
        player.stack.start_worker(host, clock_seconds=seconds)
    player.launch_until_used(*offsets)
    [(lost, claimed)] = player.stack.query(_LOST_QUERY, [list(player.run_ids)])
    if lost > claimed / 4:  # on a busy machine some may be lost
        player.wrong.append(f"{lost} of {claimed} leases were lost although no host was cut off")
    for host, seconds in offsets.items():
        if abs(player.read_clock_offset(host) - seconds) > CLOCK_SECONDS / 4:
            player.wrong.append(
                f"the worker of {host.name} reports a clock offset of {player.read_clock_offset(host):+.1f} s"
            )
    player.launch()
    _cut(player, LONG_CUT_SECONDS)


def served_elsewhere(player: HostsPlayer) -> None:
    """Run a model that only the first host serves."""
    for _ in range(3):
        run_id = player.lab.ask("launch_simulated", persona="perfect", trials=TRIALS // 3, until=False)
        player.run_ids[run_id] = ""
    player.wait_for_ends()
    if claimed := player.count_by_host().keys() & {host.name for host in player.network.hosts}:
        player.wrong.append(f"{', '.join(claimed)} claimed trials of a model that only the first host serves")


SCENARIOS: Mapping[str, Callable[[HostsPlayer], None]] = {
    scenario.__name__: scenario
    for scenario in (
        share,
        served_elsewhere,
        cut_short,
        cut_long,
        cut_from_database,
        cut_from_broker,
        slow,
        cut_dead,
        wrong_clocks,  # the last one, since the clocks stay wrong
    )
}

WRONG_CLOCKS = wrong_clocks.__name__


def _cut(player: HostsPlayer, seconds: float, *, servers: Sequence[Server] = tuple(Server)) -> Host:
    """Cut off a host that runs trials, reconnect it, wait until the runs end, and return the host."""
    host = player.wait_for_busy_host()
    host.disconnect(servers)
    time.sleep(seconds)
    host.reconnect(servers)
    player.wait_for_ends()
    _expect_limit(player)
    return host


def _expect_claims(player: HostsPlayer, host: Host) -> None:
    """Expect that a host claims trials of a new run."""
    earlier, player.run_ids = player.run_ids, {}
    try:
        player.launch_until_used(host)
    finally:
        player.run_ids = earlier | player.run_ids


def _expect_limit(player: HostsPlayer) -> None:
    """Expect that no more requests were in flight than the concurrency limit of the provider.

    Each lost execution may have one more, which was sent before its lease ended: its answer takes time, or the request
    arrives when the link is up again.
    """
    for run_id, name in player.run_ids.items():
        [(lost,)] = player.stack.query(
            "SELECT sum(greatest(execution - 1, 0)) FROM lab_trial WHERE run_id = %s", [run_id]
        )
        if name and (found := player.provider.count_most_in_flight(name)) > CONCURRENCY + lost:
            player.wrong.append(f"{name}: {found} requests in flight, the limit is {CONCURRENCY}")
