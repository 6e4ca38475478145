from django.db import migrations

from work import guards


class Migration(migrations.Migration):
    dependencies = [("work", "0003_drain")]

    operations = [migrations.RunPython(lambda apps, editor: guards.make(), lambda apps, editor: guards.drop())]
