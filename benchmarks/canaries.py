"""Search for leaked keys in the whole product, with a provider that repeats every key it receives.

`python -m benchmarks.canaries` starts what `make up` starts, except the local model, in a temporary folder, and runs
trials and probes by every method in two wire formats. Then it searches every decoded row of every table, every file and
log of the folder, every page that is linked, and every export, also inside archives. It prints the places with a key;
the exit code is 1 if there are any, if a key was never sent, or if work did not end. `--self-test` writes a key to a
row and a log; the exit code is 1 unless the search finds it in a row, a page, a file and an export.
"""

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

import httpx
import psycopg

from benchmarks.canary_commands import KEY_NAME, RESULT_VARIABLE
from benchmarks.canary_provider import HostileProvider
from benchmarks.canary_search import CanarySearch
from toolbench.installation import ROOT
from toolbench.providers.scripted_server import ScriptedServer

CANARY_BY_PLACE = {
    "environment": "sk-env-0Canary9aZq7Xw+Rt/5",
    "pasted": "sk-pasted-1Canary8bYr6Wv",
    "typed": "sk-typed-2Canary7cXs5Vu",
    "header": "tenant-Canary/3dWt4Ut~9",
    "address": "sk-address-4Canary5eVu3Ts",
}
PLANTED_CANARY = "sk-planted-5Canary4fUv2Sr"
TIMEOUT_SECONDS = 180
MAX_PAGES_PER_PATH = 150
_LINK = re.compile(r'(?:href|src|hx-get|data-url)="([^"]+)"')
_EXCLUDED_LINKS = re.compile(r"^/(?:sign-in|sign-out|static)/")
_DATABASE_FOLDERS = ("postgres", "valkey")  # files of the servers are not searched, since rows are searched decoded
_REQUIRED_COLUMNS = {("lab_provider", "base_url")}  # the address itself, which has a canary on purpose


@dataclass(slots=True)
class SearchResult:
    """Counts of what was searched, and places where a canary was found.

    Attributes:
        counts: searched values, files, pages, commands and exports by kind, rows, and bytes of all.
        hits: places with a canary, and pages with a server error.
    """

    search: CanarySearch
    counts: Counter[str] = field(default_factory=Counter)
    hits: list[str] = field(default_factory=list)

    def search_bytes(self, kind: str, place: str, data: bytes) -> None:
        """Search data and note its place if it has a canary."""
        self.counts[kind] += 1
        self.counts["bytes"] += len(data)
        if self.search.has_canary(data):
            self.hits.append(f"{kind}: {place}")


class RunningProduct:
    """A `make up` without the local model, which runs during a `with` block."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tb-canary-", dir="/tmp"))
        self.var = self.folder / "var"
        self.output = self.folder / "output"
        port = _find_free_port()
        self.base = f"http://127.0.0.1:{port}"
        settings = {"TOOLBENCH_VAR": str(self.var), "PORT": str(port), "LOCAL_MODEL": "0", "PYTHONPATH": str(ROOT)}
        settings |= {KEY_NAME: CANARY_BY_PLACE["environment"], "DJANGO_SETTINGS_MODULE": "toolbench.settings"}
        kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
        self.environment = {**kept, **settings, RESULT_VARIABLE: str(self.folder / "result")}

    def __enter__(self) -> "RunningProduct":
        with self.output.open("wb") as out:
            command = [sys.executable, "-m", "toolbench.running", "up"]
            self._up = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=out, stderr=out)
        try:
            _wait_until(
                lambda: "simulated is ready" in self.output.read_text() or self._up.poll() is not None, "make up"
            )
            if self._up.poll() is not None:
                raise RuntimeError(f"make up did not start:\n{self.output.read_text()}")
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._up.poll() is None:
            self._up.send_signal(signal.SIGINT)
            self._up.wait(TIMEOUT_SECONDS)
        subprocess.run(["rm", "-rf", str(self.folder)], check=False)

    @property
    def database_url(self) -> str:
        """Address of the product's database."""
        return str(json.loads((self.var / "running.json").read_text())["environment"]["DATABASE_URL"])

    def run_command(self, *arguments: str) -> Any:
        """Run a command of `benchmarks.canary_commands` and return its result."""
        self.run("-m", "benchmarks.canary_commands", *arguments)
        return json.loads(Path(self.environment[RESULT_VARIABLE]).read_text())

    def run(self, *arguments: str, check: bool = True) -> bytes:
        """Run Python with the product's settings; return what it printed.

        Raises:
            RuntimeError: it failed, and `check` is set.
        """
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, check=False)
        if check and done.returncode:
            raise RuntimeError(f"{arguments} failed:\n{done.stderr.decode()[-4000:]}")
        return done.stdout + done.stderr

    def sign_in(self) -> httpx.Client:
        """Return a client with a signed-in session."""
        link = re.search(r"http://\S+/sign-in/\S+", self.run("manage.py", "link").decode())
        assert link is not None
        client = httpx.Client(base_url=self.base, follow_redirects=True, timeout=120)
        path = urlsplit(link.group()).path
        page = client.get(path)
        if token := _find_csrf_token(page.text):
            client.post(path, data={"csrfmiddlewaretoken": token}, headers={"referer": self.base + path})
        return client


def _connect_by_form(client: httpx.Client, base_url: str) -> None:
    """Connect a provider with the form, as a person does, with a pasted key."""
    page = client.get("/providers/new/")
    fields = {
        "name": "canary typed",
        "base_url": base_url,
        "key": CANARY_BY_PLACE["typed"],
        "csrfmiddlewaretoken": _find_csrf_token(page.text),
    }
    answer = client.post("/providers/new/", data=fields, headers={"referer": f"{client.base_url}/providers/new/"})
    assert answer.status_code < 400, answer.text


def _find_csrf_token(page: str) -> str:
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    return found.group(1) if found else ""


def _search_rows(product: RunningProduct, searched: SearchResult) -> None:
    with psycopg.connect(product.database_url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1").fetchall()
        for (table,) in tables:
            cursor = connection.execute(f'SELECT * FROM "{table}"'.encode())
            names = [column.name for column in cursor.description or ()]
            for row in cursor:
                for name, value in zip(names, row, strict=True):
                    if value is not None and (table, name) not in _REQUIRED_COLUMNS:
                        searched.search_bytes("values", f"{table}.{name} of row {row[0]}", _to_bytes(value))
                searched.counts["rows"] += 1


def _to_bytes(value: object) -> bytes:
    if isinstance(value, bytes | memoryview):
        return bytes(value)
    return value.encode() if isinstance(value, str) else json.dumps(value, default=str).encode()


def _search_files(product: RunningProduct, searched: SearchResult) -> None:
    for path in (product.output, *sorted(product.var.rglob("*"))):
        inside = path.relative_to(product.folder).parts
        is_database = len(inside) > 1 and inside[1] in _DATABASE_FOLDERS and not path.name.endswith(".log")
        if path.is_file() and not path.is_symlink() and not is_database:
            searched.search_bytes("files", str(path.relative_to(product.folder)), path.read_bytes())


def _search_pages(client: httpx.Client, searched: SearchResult, *, runs: list[int], per_kind: int) -> None:
    """Follow the links of the site, to at most `per_kind` pages of one kind.

    Filters and sorts give a list hundreds of kinds of addresses, so the pages of one path have a limit as well.
    """
    exports = [
        f"/runs/{run}/{name}"
        for run in runs
        for name in ("report.zip", "bundle.zip", "inspect.zip", "otlp.jsonl", "trials.csv", "trials.json")
    ]
    waiting, known, kinds = ["/", *exports], {"/", *exports}, Counter[str]()
    while waiting:
        address = waiting.pop(0)
        page = client.get(address)
        searched.search_bytes("pages", address, page.content + json.dumps(dict(page.headers)).encode())
        if page.status_code >= 500:
            searched.hits.append(f"error {page.status_code}: {address}")
        if "html" not in page.headers.get("content-type", ""):
            continue
        for link in _iter_links(page):
            kind = _normalise_link(link)
            path = kind.partition("?")[0]
            if link not in known and kinds[kind] < per_kind and kinds[path] < MAX_PAGES_PER_PATH:
                known.add(link)
                kinds.update([kind, path])
                waiting.append(link)


def _iter_links(page: httpx.Response) -> Iterator[str]:
    for link in _LINK.findall(page.text):
        target = urlsplit(urldefrag(urljoin(str(page.url), unescape(link))).url)
        path = target.path + (f"?{target.query}" if target.query else "")
        if target.netloc == urlsplit(str(page.url)).netloc and not _EXCLUDED_LINKS.match(path):
            yield path


def _normalise_link(link: str) -> str:
    """Return the link with N for each number of its path, and without the values of its query."""
    path, _, query = link.partition("?")
    return re.sub(r"\d+", "N", path) + "?" + ",".join(sorted(pair.partition("=")[0] for pair in query.split("&")))


def _search_commands(product: RunningProduct, searched: SearchResult, runs: list[int]) -> None:
    """Search what commands print and write."""
    out = product.folder / "out"
    for run in runs:
        for command in (
            ("report", str(run), "--out", str(out / f"report-{run}")),
            ("bundle", str(run), "--out", str(out / f"{run}.zip")),
            ("rejudge", str(run)),
        ):
            out.mkdir(exist_ok=True)
            searched.search_bytes("commands", " ".join(command), product.run("manage.py", *command, check=False))
    searched.search_bytes("commands", "redact", product.run("manage.py", "redact", "--dry-run", check=False))
    for path in sorted(out.rglob("*")):
        if path.is_file():
            searched.search_bytes("exports", str(path.relative_to(out)), path.read_bytes())


def _search_all(
    product: RunningProduct, client: httpx.Client, runs: list[int], *, canaries: list[str], per_kind: int
) -> SearchResult:
    searched = SearchResult(CanarySearch(canaries))
    steps: dict[str, Callable[[], None]] = {
        "rows": lambda: _search_rows(product, searched),
        "files": lambda: _search_files(product, searched),
        "command line": lambda: _search_commands(product, searched, runs[:: len(runs) - 1]),
        "pages": lambda: _search_pages(client, searched, runs=runs, per_kind=per_kind),
    }
    for name, step in steps.items():
        began = time.monotonic()
        step()
        print(f"  {name} searched in {time.monotonic() - began:.0f} s", flush=True)
    return searched


def _print_result(searched: SearchResult) -> None:
    for kind, count in sorted(searched.counts.items()):
        print(f"  {kind}: {count:,}")
    print(f"  decoded texts: {searched.search.texts:,}")
    for hit in searched.hits[:200]:
        print(f"FOUND in {hit}")


def _check_search(product: RunningProduct, client: httpx.Client, runs: list[int], per_kind: int) -> int:
    """Write a key to a row and a log; return 0 if the search finds it everywhere, else 1."""
    product.run_command("plant", PLANTED_CANARY)
    with (product.var / "log" / "web.log").open("a") as log:
        log.write(f"planted {PLANTED_CANARY}\n")
    searched = _search_all(product, client, runs, canaries=[PLANTED_CANARY], per_kind=per_kind)
    _print_result(searched)
    missed = [
        kind
        for kind in ("values", "files", "pages", "exports")
        if not any(hit.startswith(kind) for hit in searched.hits)
    ]
    print(
        f"The planted key was not found in: {', '.join(missed)}." if missed else "The planted key was found everywhere."
    )
    return 1 if missed else 0


def _wait_until(is_met: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + TIMEOUT_SECONDS
    while not is_met():
        if time.monotonic() > until:
            raise TimeoutError(f"{what}: not after {TIMEOUT_SECONDS} s")
        time.sleep(0.1)


def _find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2, help="trials of each cell (default 2)")
    parser.add_argument("--per-kind", type=int, default=6, help="searched pages of one kind (default 6)")
    parser.add_argument(
        "--self-test", action="store_true", help="write a key to a row and a log, and check that it is found"
    )
    return parser.parse_args()


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the product is stopped too
    options, began, hostile = _parse_options(), time.monotonic(), HostileProvider()
    with ScriptedServer(hostile) as provider, RunningProduct() as product:
        client = product.sign_in()
        _connect_by_form(client, provider.base_url)
        prepared = product.run_command("prepare", provider.base_url, json.dumps(CANARY_BY_PLACE), str(options.trials))
        ended = product.run_command("wait", "300")
        probes, requests = len(prepared["probes"]), len(provider.seen)
        print(
            f"{ended['trials']} trials, {probes} probes, {requests:,} requests; "
            f"{ended['open']} trials and probes did not end."
        )
        print(
            f"{len(hostile.played)} pairs of place and spelling were answered; {len(hostile.sent)} keys were received.",
            flush=True,
        )
        if options.self_test:
            return _check_search(product, client, prepared["runs"], options.per_kind)
        canaries = [*CANARY_BY_PLACE.values()]
        searched = _search_all(product, client, prepared["runs"], canaries=canaries, per_kind=options.per_kind)
    _print_result(searched)
    unseen = {*canaries} - hostile.sent
    print(f"{len(searched.hits)} places have a key; {len(unseen)} keys were never sent.")
    print(f"Duration: {time.monotonic() - began:.0f} s.")
    return 1 if searched.hits or unseen or ended["open"] else 0


if __name__ == "__main__":
    sys.exit(main())
