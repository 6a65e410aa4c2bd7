"""Share links: who may revoke them, and how long they are valid."""

import pytest

from tests.factories import make_run
from toolbench.lab.accounts import share_links
from toolbench.lab.accounts.share_links import (
    MAX_QUERY_CHARACTERS,
    build_link_token,
    create_share_link,
    find_share_link,
    list_share_links,
    revoke_share_link,
)
from toolbench.lab.accounts.sign_in import get_first_owner
from toolbench.lab.errors import InvalidFieldsError

pytestmark = pytest.mark.django_db


def test_revoke_share_link_beyond_listed_links_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_links, "MAX_LINKS_LISTED", 1)
    owner, run = get_first_owner(), make_run()
    first, second = (create_share_link(owner, "run", target=run.pk) for _ in range(2))
    assert list_share_links(owner) == [second]
    assert revoke_share_link(owner, first.pk) == first
    assert find_share_link(build_link_token(first)) is None
    assert revoke_share_link(owner, first.pk) is None


@pytest.mark.parametrize(
    ("query", "message"),
    [("", "Compare sides first"), ("a" * (MAX_QUERY_CHARACTERS + 1), "This comparison has too many filters")],
)
def test_create_share_link_says_what_is_wrong_with_a_query(query: str, message: str) -> None:
    with pytest.raises(InvalidFieldsError, match=message):
        create_share_link(get_first_owner(), "comparison", query=query)


def test_find_share_link_of_user_without_role_is_none() -> None:
    owner, run = get_first_owner(), make_run()
    operator = type(owner).objects.create(username="ana", is_staff=True)
    link = create_share_link(operator, "run", target=run.pk)
    assert find_share_link(build_link_token(link)) == link
    operator.is_staff = False
    operator.save()
    assert find_share_link(build_link_token(link)) is None
    assert link not in list_share_links(owner)
