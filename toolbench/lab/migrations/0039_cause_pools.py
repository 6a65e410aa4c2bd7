"""Store the number of trials of ended runs by model, scenario, outcome and cause; all pools are derived anew."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lab', '0038_responses_wire'),
    ]

    operations = [
        migrations.CreateModel(
            name='CausePool',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('simulated', models.BooleanField()),
                ('imported', models.BooleanField()),
                ('provider_name', models.CharField(max_length=80)),
                ('model_name', models.CharField(max_length=200)),
                ('profile', models.CharField(max_length=80)),
                ('strategy', models.CharField(max_length=80)),
                ('scenario', models.CharField(max_length=60)),
                ('scenario_version', models.PositiveSmallIntegerField()),
                ('instance_kind', models.CharField(max_length=8)),
                ('outcome', models.CharField(blank=True, max_length=10)),
                ('taxonomy', models.PositiveSmallIntegerField()),
                ('cause', models.CharField(blank=True, max_length=40)),
                ('cause_signature', models.CharField(blank=True, max_length=240)),
                ('failure_class', models.CharField(blank=True, max_length=60)),
                ('signature', models.CharField(blank=True, max_length=200)),
                ('trials', models.PositiveBigIntegerField()),
                ('first_trial', models.BigIntegerField()),
                ('first_seen', models.DateTimeField(null=True)),
                ('runs', models.BinaryField()),
            ],
            options={
                'indexes': [models.Index(fields=['provider_name', 'model_name'], name='causes_of_model')],
            },
        ),
        migrations.RunSQL(
            "DELETE FROM lab_cellpool; UPDATE lab_run SET pooled = false WHERE pooled", migrations.RunSQL.noop
        ),
    ]
