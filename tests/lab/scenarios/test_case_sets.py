"""Whole sets of cases by one word, and who may see them."""

import pytest

from toolbench.lab.cases.bfcl_import import import_bfcl
from toolbench.lab.cases.edit import delete_case
from toolbench.lab.models import CaseSet
from toolbench.lab.scenarios.case_sets import CaseSetNotFoundError, expand_set_words, find_slugs_by_word, set_privacy
from toolbench.lab.scenarios.catalogue import is_private

pytestmark = pytest.mark.django_db


def test_a_set_stands_for_the_cases_it_holds_now() -> None:
    import_bfcl(["simple_python"], limit=3)
    group = CaseSet.objects.get()
    first, second, third = group.cases.values_list("slug", flat=True)
    delete_case(second)

    assert expand_set_words(["happy_path", f"set:{group.pk}", first]) == ("happy_path", first, third)
    assert expand_set_words(["set:0", "set:x"]) == ("set:0", "set:x")
    words = ("set:bfcl SIMPLE_python", f"set:{group.pk}", third.upper(), second, "happy_path", "set:none")
    assert find_slugs_by_word(words) == {words[0]: (first, third), words[1]: (first, third), words[2]: (third,)}


def test_what_was_made_private_stays_so_when_it_is_brought_in_again() -> None:
    import_bfcl(["simple_python"], limit=1)
    group = CaseSet.objects.get()
    set_privacy(group.pk, public=False)
    import_bfcl(["simple_python"], limit=2)

    assert not CaseSet.objects.get().public
    assert all(is_private(case.slug) for case in group.cases.all())
    with pytest.raises(CaseSetNotFoundError):
        set_privacy(0, public=True)
