from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("incidents", "0003_postmortems")]

    operations = [
        migrations.AddField(
            model_name="alertroute",
            name="example",
            field=models.BooleanField(default=False),
        ),
    ]
