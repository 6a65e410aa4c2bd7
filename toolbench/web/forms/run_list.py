"""Actions on the runs that are selected in the list of runs."""

from dataclasses import dataclass

from django.http import QueryDict

from toolbench.lab.errors import UNKNOWN_BUTTON
from toolbench.lab.models import Run
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.runs import bulk
from toolbench.lab.runs.action_checks import RunActionError


@dataclass(frozen=True, slots=True)
class RunListAction:
    """Action on several runs.

    Attributes:
        name: `label` or `delete`; `execute` refuses other names.
        label: the new label, for the action `label`.
        confirmed: whether the user has confirmed a deletion.
    """

    name: str
    run_ids: tuple[int, ...]
    label: str
    confirmed: bool

    @classmethod
    def parse(cls, values: QueryDict) -> "RunListAction":
        """Parse the sent form; values of `run` that are not ids are ignored."""
        parsed_ids = (parse_whole_number(value) for value in values.getlist("run"))
        run_ids = tuple(dict.fromkeys(run_id for run_id in parsed_ids if run_id is not None))
        return cls(values.get("action", ""), run_ids, values.get("label", ""), "confirmed" in values)

    @property
    def needs_confirmation(self) -> bool:
        """Return whether the user must confirm the action first."""
        return self.name == "delete" and not self.confirmed

    @property
    def subject(self) -> str:
        """Return the runs as the audit list names them, such as "run 7, 9"."""
        return f"run {', '.join(map(str, self.run_ids))}"

    def list_runs(self) -> list[Run]:
        """Return the runs, newest first, for the confirmation of their deletion.

        Raises:
            RunActionError: no run or too many are selected, or one of them cannot be deleted.
        """
        return bulk.list_deletable_runs(self.run_ids)

    def execute(self) -> str:
        """Execute the action on all runs and return a sentence about the result.

        Raises:
            RunActionError: the action is not known, or not possible for one of the runs. No run is changed then.
        """
        if self.name == "delete":
            count = bulk.delete_runs(self.run_ids)
            return f"{count} run{'' if count == 1 else 's'} deleted."
        if self.name == "label":
            count = bulk.label_runs(self.run_ids, self.label)
            return f"Label of {count} run{'' if count == 1 else 's'} saved."
        raise RunActionError(UNKNOWN_BUTTON)
