from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("documents", "0007_search"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="document",
            index=models.Index(
                fields=["workspace", "status", "-created_at", "-id"],
                name="documents_of_status",
            ),
        ),
        migrations.AddIndex(
            model_name="documentchunk",
            index=models.Index(fields=["document", "page", "position"], name="chunks_of_page"),
        ),
    ]
