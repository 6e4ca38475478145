import pytest

from tests.api.described import OPERATIONS
from tests.browser.people import Person

pytestmark = [pytest.mark.once, pytest.mark.long, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("scripts", [True, False])
def test_every_operation_is_on_the_page_of_the_docs(chromium, live_server, scripts):
    person = Person(chromium, live_server.url, scripts=scripts)
    page = person.page

    person.go("/api/docs")

    assert page.locator("details.operation").count() == len(OPERATIONS)
    page.locator("#submitRun > summary").press("Enter")
    assert "curl" in page.locator("#submitRun .call").inner_text()
    assert person.complaints == []
    person.context.close()
