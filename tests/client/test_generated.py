import subprocess
import sys

from django.conf import settings

from config.api import api
from tools.make_client import TARGET, format_source, source_of


def test_the_client_is_as_the_api_is():
    assert TARGET.read_text() == format_source(source_of(api.get_openapi_schema())), "make client"


def test_the_client_needs_nothing_but_python():
    script = "import sys, ade_client; print(sorted(m for m in sys.modules if m.split('.')[0] in ('django', 'config')))"

    # -S disables site-packages, so that only the standard library can be imported.
    said = subprocess.run(
        [sys.executable, "-S", "-c", script], cwd=settings.BASE_DIR / "clients/python", capture_output=True, text=True
    )

    assert (said.stdout, said.stderr) == ("[]\n", "")
