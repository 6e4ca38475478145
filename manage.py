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
        # Exit with the code that a shell uses for Ctrl-C, and without a traceback.
        sys.exit(130)
    except Exception as error:
        # `sentence` needs the settings, which are available only once the apps are ready. The module is imported late
        # because hardly any command needs it.
        said = import_module("config.trouble").sentence(error) if apps.ready else None
        if said is None:
            raise
        sys.exit(said)
