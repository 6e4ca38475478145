from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Coalesce


def tell_since_when(apps, editor):
    failing = apps.get_model("feeds", "FeedSource").objects.using(editor.connection.alias).filter(failures__gt=0)
    # Nobody has kept when the first failure was: it came after the last answer.
    failing.update(failing_since=Coalesce("succeeded_at", "created_at"))


class Migration(migrations.Migration):
    dependencies = [
        ("feeds", "0004_briefs_remain"),
    ]

    operations = [
        migrations.AddField(
            model_name="feedsource",
            name="failing_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.RunPython(tell_since_when, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="feedsource",
            constraint=models.CheckConstraint(
                condition=Q(failures=0, failing_since__isnull=True) | Q(failures__gt=0, failing_since__isnull=False),
                name="feed_failing_since_is_set_exactly_while_it_fails",
                violation_error_message="A feed that fails says since when, and no other does.",
            ),
        ),
    ]
