"""The environment variables of the tests. Loaded through `addopts`: pytest-django reads the settings before any
conftest.
"""

import atexit
import os
import shutil
import tempfile

# The workers of pytest-xdist inherit the variables, including the directory.
if "ADE_TEST_RUN" not in os.environ:
    scratch = tempfile.mkdtemp(prefix="ade-tests-")
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    os.environ |= {
        "ADE_TEST_RUN": "1",
        "ADE_ENV_FILE": os.devnull,
        "ADE_VAR_DIR": scratch,
        "ADE_ALLOW_FAILPOINTS": "true",
        "ADE_TEST_APPS": "tests.testwork",
        # Scheduled jobs must not run during tests.
        "ADE_SCHEDULES": "false",
        "ADE_FEED_NETWORKS": "",
        # A busy machine has the time to give work back; tests of that time set their own.
        "ADE_EXIT_SECONDS": "15",
        # Tests of runs without a sandbox say so themselves; the rest take what this machine has.
        "ADE_SANDBOX": "preferred",
        "DEBUG": "true",
    }
