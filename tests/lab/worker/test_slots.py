from uuid import uuid4

from toolbench.lab.worker.slots import MOST_UNSTORED, Free, Slots


def test_an_ended_trial_frees_its_slot_until_the_database_knows_of_its_end() -> None:
    slots, lease = Slots(), uuid4()
    slots.end(lease)
    assert slots.freed.is_set()
    assert slots.free() == Free(over=(lease,))
    slots.stored(lease)
    assert slots.free() == Free()


def test_so_many_ends_may_wait_to_be_stored_and_no_more_slots_are_free() -> None:
    slots, leases = Slots(), [uuid4() for _ in range(MOST_UNSTORED + 1)]
    for lease in leases:
        slots.end(lease)
    assert slots.free().over == tuple(leases[:-1])
    slots.freed.clear()
    slots.stored(leases[0])
    assert slots.freed.is_set()
    assert slots.free().over == tuple(leases[1:])


def test_a_slot_is_kept_for_each_trial_that_comes_back() -> None:
    slots = Slots()
    with slots.returning(), slots.returning():
        assert slots.free() == Free(kept=2)
    assert slots.free() == Free()
