"""What the tests' Django finds in its environment. In `addopts`: pytest-django reads settings before any conftest."""

import atexit
import os
import shutil
import tempfile

# pytest-xdist's workers inherit it, the directory included.
if "ADE_TEST_RUN" not in os.environ:
    scratch = tempfile.mkdtemp(prefix="ade-tests-")
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    os.environ |= {
        "ADE_TEST_RUN": "1",
        "ADE_ENV_FILE": os.devnull,
        "ADE_VAR_DIR": scratch,
        "ADE_ALLOW_FAILPOINTS": "true",
        "ADE_TEST_APPS": "tests.testwork",
        # Whatever falls due while tests run is not theirs.
        "ADE_SCHEDULES": "false",
        "ADE_FEED_NETWORKS": "",
        "DEBUG": "true",
    }
