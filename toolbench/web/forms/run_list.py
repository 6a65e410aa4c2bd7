"""Actions of the list of runs, on the runs that are selected there."""

from dataclasses import dataclass

from django.http import QueryDict

from toolbench.lab.models import Run
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.runs import bulk
from toolbench.lab.runs.control import RunActionError


@dataclass(frozen=True, slots=True)
class RunListAction:
    """An action on several runs.

    Attributes:
        confirmed: whether the page that says what is deleted has been shown.
    """

    name: str
    run_ids: tuple[int, ...]
    label: str
    confirmed: bool

    @classmethod
    def parse(cls, values: QueryDict) -> "RunListAction":
        """Return the action of the sent form; values that are no ids are left out."""
        ids = (parse_whole_number(value) for value in values.getlist("run"))
        found = tuple(dict.fromkeys(run_id for run_id in ids if run_id is not None))
        return cls(values.get("action", ""), found, values.get("label", ""), "confirmed" in values)

    @property
    def needs_confirmation(self) -> bool:
        """Whether the user must be shown first what is deleted."""
        return self.name == "delete" and not self.confirmed

    @property
    def subject(self) -> str:
        """The runs as the audit list names them."""
        return f"run {', '.join(map(str, self.run_ids))}"

    def list_runs(self) -> list[Run]:
        """Return the runs that would be deleted.

        Raises:
            RunActionError: as `execute`.
        """
        return bulk.list_deletable_runs(self.run_ids)

    def execute(self) -> str:
        """Execute the action and return a sentence about it.

        Raises:
            RunActionError: the action is not known, or not possible for all these runs.
        """
        if self.name == "delete":
            count = bulk.delete_runs(self.run_ids)
            return f"{count} run{'' if count == 1 else 's'} deleted."
        if self.name == "label":
            count = bulk.label_runs(self.run_ids, self.label)
            return f"Label of {count} run{'' if count == 1 else 's'} saved."
        raise RunActionError("That button is not known here; nothing was changed.")
