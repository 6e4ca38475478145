from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("work", "0004_events_stay")]

    operations = [
        migrations.AddField(
            model_name="worker",
            name="weaknesses",
            field=models.JSONField(blank=True, db_default=models.Value([], models.JSONField()), default=list),
        ),
    ]
