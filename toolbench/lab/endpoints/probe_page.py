"""What the page of one probe reads: how far it is, what each check found, and the bytes behind it."""

from dataclasses import dataclass

from django.db.models import Sum

from toolbench.engine.capabilities.preset_proposal import PresetProposal, propose_preset
from toolbench.lab.credentials.provider_secrets import list_environment_secrets
from toolbench.lab.endpoints.capabilities import read_probe_capabilities
from toolbench.lab.models import Probe, ProbeExchange
from toolbench.lab.traces.code_view import CodeView, render_body
from toolbench.lab.whole_numbers import parse_whole_number
from toolbench.providers.masking.url_keys import mask_address
from toolbench.providers.probing.probes import CHECKS, TITLES

MARK_BY_OUTCOME = {"passed": "pass", "failed": "fail", "unknown": "na"}
FIRST_USE_CHECK_COUNT = 3


@dataclass(frozen=True, slots=True)
class ProbeCheckRow:
    """`mark` is an outcome's; `exchanges` are the numbers of its evidence."""

    title: str
    mark: str
    word: str
    sentence: str
    exchanges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShownExchange:
    """One exchange with its bytes laid out."""

    exchange: ProbeExchange
    request: CodeView
    response: CodeView


@dataclass(frozen=True, slots=True)
class ProbePage:
    """`tokens` and `cost` are of all executions: what a lost worker sent was sent too."""

    probe: Probe
    checks: tuple[ProbeCheckRow, ...]
    total: int
    requests: int
    tokens: int
    cost: float | None
    proposal: PresetProposal
    shown: ShownExchange | None

    @property
    def address(self) -> str:
        """Where it was asked, with stars for what may be a key in a row of an earlier version."""
        return mask_address(self.probe.base_url, list_environment_secrets())

    @property
    def live(self) -> bool:
        return self.probe.state != Probe.State.DONE


def get_probe_page(probe_id: int, exchange: str = "") -> ProbePage:
    """`exchange` is the number of the one to show. Raises Probe.DoesNotExist."""
    probe = Probe.objects.select_related("model", "provider").get(pk=probe_id)
    sent = probe.exchanges.aggregate(read=Sum("input_tokens"), written=Sum("output_tokens"), cost=Sum("cost"))
    full = probe.kind == Probe.Kind.CONFORMANCE
    return ProbePage(
        probe=probe,
        checks=tuple(_build_row(check) for check in probe.checks),
        total=len(CHECKS) if full else FIRST_USE_CHECK_COUNT,
        requests=probe.exchanges.count(),
        tokens=(sent["read"] or 0) + (sent["written"] or 0),
        cost=sent["cost"],
        proposal=propose_preset(read_probe_capabilities(probe)),
        shown=_find_exchange(probe, exchange),
    )


def _build_row(check: dict[str, object]) -> ProbeCheckRow:
    slug, outcome = str(check["slug"]), str(check["outcome"])
    numbers = check.get("exchanges")
    return ProbeCheckRow(
        title=TITLES.get(slug, slug),
        mark=MARK_BY_OUTCOME.get(outcome, "na"),
        word="inconclusive" if outcome == "unknown" else outcome,
        sentence=str(check["sentence"]),
        exchanges=tuple(numbers) if isinstance(numbers, list) else (),
    )


def _find_exchange(probe: Probe, number: str) -> ShownExchange | None:
    ordinal = parse_whole_number(number)
    found = None if ordinal is None else probe.exchanges.filter(ordinal=ordinal).order_by("-execution").first()
    if found is None:
        return None
    return ShownExchange(found, render_body(bytes(found.request)), render_body(bytes(found.response)))
