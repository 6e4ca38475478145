import re

import pytest
from django.conf import settings

from api.errors import CODES
from api.models import Scope

pytestmark = pytest.mark.edge

DOCS = (settings.BASE_DIR / "docs" / "api.md").read_text()


def test_every_code_is_explained_as_it_is():
    rows = re.findall(r"^\| `(\w+)` \| (\d{3}) \| (.+) \|$", DOCS, re.MULTILINE)

    assert rows == [(code, str(status), meaning) for code, (status, meaning) in CODES.items()]


def test_every_scope_is_explained():
    assert re.findall(r"^\| `(\w+)` \| [^|]+ \|$", DOCS, re.MULTILINE) == list(Scope.values)
