from django.db import migrations, models

from feeds.briefs import guards


class Migration(migrations.Migration):
    dependencies = [
        ("feeds", "0002_names_of_feeds"),
    ]

    operations = [
        migrations.AddField(
            model_name="brief",
            name="name",
            # There is none yet: nobody could publish one.
            field=models.CharField(default="", max_length=20, unique=True),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="brief",
            name="time_zone",
            field=models.CharField(default="UTC", max_length=64),
        ),
        migrations.AddField(
            model_name="brief",
            name="feeds_silent",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="brief",
            name="last_answer_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.RunPython(lambda apps, editor: guards.make(), lambda apps, editor: guards.drop()),
    ]
