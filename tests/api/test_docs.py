import re

import pytest
from django.conf import settings

from api.errors import CODES
from api.models import Scope

pytestmark = pytest.mark.edge

REFERENCE = (settings.BASE_DIR / "docs" / "reference" / "api.md").read_text()


def test_every_code_is_explained_as_it_is():
    rows = re.findall(r"^\| `(\w+)` \| (\d{3}) \| (.+) \|$", REFERENCE, re.MULTILINE)

    assert rows == [(code, str(status), meaning) for code, (status, meaning) in CODES.items()]


def test_every_scope_is_explained():
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| the (?:role|permission) [^|]+ \|$", REFERENCE, re.MULTILINE)

    assert rows == list(Scope.values)
