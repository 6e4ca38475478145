#!/usr/bin/env python
import os
import sys
from importlib import import_module

from django.apps import apps
from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        execute_from_command_line(sys.argv)
    except KeyboardInterrupt:
        # Exit as a shell does: the user who pressed Ctrl-C needs no traceback.
        sys.exit(130)
    except Exception as error:
        # Settings are available only once the apps are ready. Imported late because hardly any command needs it.
        said = import_module("config.trouble").sentence(error) if apps.ready else None
        if said is None:
            raise
        sys.exit(said)
