from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lab', '0045_gateway_ages_and_batches'),
    ]

    operations = [
        migrations.AlterField(
            model_name='caseset',
            name='kind',
            field=models.CharField(choices=[('own', 'own'), ('bfcl', 'BFCL'), ('draft', 'draft')], default='own', max_length=8),
        ),
    ]
