"""Request limit and token limit of a run."""

from collections import Counter

from django.db import transaction

from toolbench.lab.metrics.cells import recompute_all_stale
from toolbench.lab.models import Trial
from toolbench.lab.planning.run_request import MAX_RUN_LIMIT
from toolbench.lab.runs.action_checks import RunActionError, check_open_trials, get_run
from toolbench.lab.runs.control import check_paused, resume_run
from toolbench.lab.runs.sequential_stopping import count_further_trials
from toolbench.lab.worker.request_budget import correct_request_counts


@transaction.atomic
def set_limits(run_id: int, *, request_cap: int | None, token_cap: int | None, confirmed_requests: int = 0) -> None:
    """Set both limits of a run; its state does not change.

    If more attempts are stored than requests were counted as used, the count is corrected first. Used tokens are not
    counted again.

    Args:
        run_id: the run.
        request_cap: the new limit, above the requests used; None for no limit.
        token_cap: the new limit, above the tokens used; None for no limit.
        confirmed_requests: the confirmed number of paid requests.

    Raises:
        RunActionError: there is no such run, a limit is too low or too high, or the request limit is raised after a
            scenario or the engine has changed.
        PaidRequestsUnconfirmedError: the request limit is raised, and the open trials and those of later rounds may
            send more paid requests than were confirmed.
    """
    recompute_all_stale(run_id)
    correct_request_counts(run_id)
    run = get_run(run_id)
    limits = (("requests", request_cap, run.requests_reserved), ("tokens", token_cap, run.tokens_used))
    for name, limit, used in limits:
        if limit is not None and limit <= used:
            raise RunActionError(f"{used} {name} are used already: the limit has to be higher. Nothing was changed.")
        if limit is not None and limit > MAX_RUN_LIMIT:
            raise RunActionError(
                f"A limit is at most {MAX_RUN_LIMIT:,} {name}; leave it empty for none. Nothing was changed."
            )
    raises_request_cap = run.request_cap is not None and (request_cap is None or request_cap > run.request_cap)
    run.request_cap, run.token_cap = request_cap, token_cap
    if raises_request_cap:
        open_trials = run.trials.exclude(state=Trial.State.DONE).order_by()
        max_trials_by_cell = Counter(open_trials.values_list("cell_id", flat=True)) + count_further_trials(run)
        check_open_trials(run, max_trials_by_cell, confirmed_requests, used=run.requests_reserved)
    run.save(update_fields=["request_cap", "token_cap"])


@transaction.atomic
def set_limits_and_resume(
    run_id: int, *, request_cap: int | None, token_cap: int | None, confirmed_requests: int = 0
) -> None:
    """Set both limits of a paused run and resume it, in one transaction.

    Raises:
        RunActionError: as in `set_limits`, or the run is not paused.
        PaidRequestsUnconfirmedError: as in `set_limits`.
    """
    check_paused(get_run(run_id))
    set_limits(run_id, request_cap=request_cap, token_cap=token_cap, confirmed_requests=confirmed_requests)
    resume_run(run_id)
