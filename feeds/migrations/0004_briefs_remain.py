from django.db import migrations

from feeds.briefs import guards


def make_anew(apps, editor):
    guards.drop()
    guards.make()


class Migration(migrations.Migration):
    dependencies = [
        ("feeds", "0003_briefs"),
    ]

    operations = [
        migrations.RunPython(make_anew, migrations.RunPython.noop),
    ]
