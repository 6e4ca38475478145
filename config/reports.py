"""Hides secrets in the error pages that Django shows with DEBUG=true."""

import re

from django.views.debug import SafeExceptionReporterFilter


class Filter(SafeExceptionReporterFilter):
    # Also hide connection strings, because they contain keys.
    hidden_settings = re.compile(f"{SafeExceptionReporterFilter.hidden_settings.pattern}|CONNECTION", re.IGNORECASE)
