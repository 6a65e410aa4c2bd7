"""Command that creates the aliases `stored` and `unstored`, and a token for them.

`python -m benchmarks.gateway.aliases BASE_URL` prints the token. The database is that of the environment.
"""

import sys

from django.contrib.auth.models import User

import benchmarks.django_setup  # noqa: F401
from toolbench.lab.accounts.roles import Role, set_role
from toolbench.lab.accounts.tokens import create_api_token
from toolbench.lab.models import Model, Provider
from toolbench.lab.serving.aliases import AliasChoice, save_alias

NAME = "bench"
CONCURRENCY = 2000
KEPT_PERCENT_BY_ALIAS = {"stored": 100, "unstored": 0}


def main() -> None:
    provider, _ = Provider.objects.get_or_create(name=NAME, base_url=sys.argv[1], concurrency=CONCURRENCY)
    model, _ = Model.objects.get_or_create(provider=provider, name="m", canonical="m")
    for name, percent in KEPT_PERCENT_BY_ALIAS.items():
        save_alias(AliasChoice(name, model.pk, keep_percent=percent), owner=None)
    user, _ = User.objects.get_or_create(username=NAME)
    set_role(user, Role.OPERATOR)
    user.save()
    print(create_api_token(user, NAME, ["serve"], None)[1])


if __name__ == "__main__":
    main()
