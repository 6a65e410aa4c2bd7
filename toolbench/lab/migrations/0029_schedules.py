"""Schedules, alert rules, alerts and their deliveries."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lab', '0028_saved_views'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='AlertRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('drift', 'Success drops'), ('below_target', 'Below the target'), ('slow', 'p95 too slow'), ('infrastructure', 'Infrastructure'), ('spend', 'Spend'), ('answers_changed', 'Answers changed'), ('run_ended', 'Run ended')], max_length=20)),
                ('threshold', models.FloatField(blank=True, null=True)),
                ('webhook_encrypted', models.BinaryField(null=True)),
                ('webhook_host', models.CharField(blank=True, max_length=260)),
                ('email', models.EmailField(blank=True, max_length=254)),
                ('active', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.AddField(
            model_name='run',
            name='alerts_checked_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name='Alert',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('series', models.CharField(blank=True, max_length=64)),
                ('sentence', models.CharField(max_length=500)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('resolved_at', models.DateTimeField(blank=True, null=True)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='alerts', to='lab.run')),
                ('rule', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='alerts', to='lab.alertrule')),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='AlertDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('channel', models.CharField(choices=[('webhook', 'webhook'), ('email', 'e-mail')], max_length=8)),
                ('state', models.CharField(choices=[('pending', 'waiting'), ('sending', 'being sent'), ('sent', 'sent'), ('failed', 'failed'), ('unclear', 'unclear')], default='pending', max_length=8)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_attempt_at', models.DateTimeField(null=True)),
                ('sent_at', models.DateTimeField(null=True)),
                ('last_error', models.CharField(blank=True, max_length=300)),
                ('alert', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='lab.alert')),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='Schedule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=120)),
                ('request', models.JSONField(default=dict)),
                ('every_hours', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('hour_utc', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('requests_per_run', models.PositiveIntegerField()),
                ('requests_per_month', models.PositiveIntegerField()),
                ('active', models.BooleanField(default=True)),
                ('next_due_at', models.DateTimeField()),
                ('skip_reason', models.CharField(blank=True, max_length=300)),
                ('skipped_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('baseline_runs', models.ManyToManyField(blank=True, related_name='+', to='lab.run')),
                ('owner', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['name', 'id'],
            },
        ),
        migrations.AddField(
            model_name='alertrule',
            name='schedule',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='rules', to='lab.schedule'),
        ),
        migrations.AddField(
            model_name='run',
            name='schedule',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='runs', to='lab.schedule'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('alerts_checked_at', None), ('state__in', ['finished', 'cancelled'])), fields=['id'], name='runs_to_check'),
        ),
        migrations.AddIndex(
            model_name='alertdelivery',
            index=models.Index(condition=models.Q(('state__in', ['pending', 'sending'])), fields=['next_attempt_at'], name='deliveries_to_send'),
        ),
        migrations.AddConstraint(
            model_name='alertdelivery',
            constraint=models.UniqueConstraint(fields=('alert', 'channel'), name='delivery_once_per_channel'),
        ),
        migrations.AddConstraint(
            model_name='alert',
            constraint=models.UniqueConstraint(fields=('rule', 'series', 'run'), name='alert_once_per_run'),
        ),
        migrations.AddConstraint(
            model_name='alert',
            constraint=models.UniqueConstraint(condition=models.Q(('resolved_at', None)), fields=('rule', 'series'), name='alert_open_once'),
        ),
        migrations.AddConstraint(
            model_name='schedule',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('every_hours', None), ('hour_utc__range', (0, 23))), models.Q(('every_hours__gte', 1), ('hour_utc', None)), _connector='OR'), name='schedule_has_one_rhythm'),
        ),
    ]
