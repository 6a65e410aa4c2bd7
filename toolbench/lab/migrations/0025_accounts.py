"""Give sign-in links an account, make the accounts of today owners, and add the audit list."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def make_owners(apps, schema_editor):
    """Make every account an owner's: until now, every account was the owner's."""
    User = apps.get_model("auth", "User")
    User.objects.update(is_superuser=True, is_staff=True)


def give_links_an_account(apps, schema_editor):
    """Give each link the owner's account; it is created if it does not exist yet."""
    SignInLink = apps.get_model("lab", "SignInLink")
    if SignInLink.objects.exists():
        User = apps.get_model("auth", "User")
        owner, _ = User.objects.get_or_create(username="owner", defaults={"is_superuser": True, "is_staff": True})
        SignInLink.objects.update(user=owner)


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("lab", "0024_search_texts"),
    ]

    operations = [
        migrations.RunPython(make_owners, migrations.RunPython.noop),
        migrations.AddField(
            model_name="signinlink",
            name="user",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="sign_in_links",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RunPython(give_links_an_account, migrations.RunPython.noop),
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="signinlink",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="sign_in_links",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(auto_now_add=True, db_index=True)),
                ("username", models.CharField(max_length=150)),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("launched", "launched"),
                            ("changed", "changed"),
                            ("added", "added"),
                            ("deleted", "deleted"),
                            ("imported", "imported"),
                            ("key_entered", "entered a key for"),
                            ("key_removed", "removed a key of"),
                            ("invited", "invited"),
                        ],
                        max_length=20,
                    ),
                ),
                ("subject", models.CharField(max_length=300)),
                ("url", models.CharField(blank=True, max_length=300)),
            ],
            options={"verbose_name_plural": "audit entries", "ordering": ("-at", "-pk")},
        ),
    ]
