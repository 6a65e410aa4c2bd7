"""Whether what is stored of a run says again what was judged of it."""

from dataclasses import dataclass

from toolbench.lab.models import Trial
from toolbench.lab.replays.replaying import differences, replay


@dataclass(frozen=True, slots=True)
class ReplayCheck:
    """Trials of a run replayed under their own settings. `differing` and `unknown` hold a line per trial."""

    same: int
    never_sent: int
    differing: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.differing and not self.unknown

    @property
    def sentence(self) -> str:
        replayed = self.same + len(self.differing) + len(self.unknown)
        left_out = f"; {self.never_sent} were never sent" if self.never_sent else ""
        return (
            f"{self.same} of {replayed} replayed trials have the same verdict and end, {len(self.differing)} differ, "
            f"{len(self.unknown)} cannot be known{left_out}. No request was sent."
        )


def check_run(run_id: int) -> ReplayCheck:
    """Every finished trial of the run. To be called in a thread without an event loop."""
    ids = Trial.objects.filter(run_id=run_id, state=Trial.State.DONE).order_by("position").values_list("pk", flat=True)
    same = never_sent = 0
    differing: list[str] = []
    unknown: list[str] = []
    for one in replay(ids):
        name = f"trial {one.trial.pk} ({one.trial.scenario})"
        if one.never_sent:
            never_sent += 1
        elif one.unknown_from is not None:
            unknown.append(f"{name}: unknown from step {one.unknown_from}: {one.why}.")
        elif changed := differences(one):
            differing.append(f"{name}: {', '.join(changed)} differ.")
        else:
            same += 1
    return ReplayCheck(same, never_sent, tuple(differing), tuple(unknown))
