import pytest
from django.db import connection

from documents.models import DocumentField
from tests.factories import DocumentFactory

pytestmark = pytest.mark.django_db


def test_the_list_of_what_is_to_be_looked_at_is_read_from_its_index(olga, workspace):
    documents = [DocumentFactory(workspace=workspace, status="processed") for _ in range(5)]
    DocumentField.objects.bulk_create(
        DocumentField(document=document, name=f"f{n}", value="v", to_review=n % 20 == 0)
        for document in documents
        for n in range(1000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE document_fields")

    for rows in (DocumentField.objects.for_user(olga), DocumentField.objects.filter(document__workspace=workspace)):
        plan = rows.listed().with_corrections().to_look_at().order_by("-id")[:50].explain()
        assert "document_fields_to_review" in plan
        assert "field_correction" in plan
