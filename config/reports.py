"""What pages about errors, which Django shows with DEBUG=true, leave out."""

import re

from django.views.debug import SafeExceptionReporterFilter


class Filter(SafeExceptionReporterFilter):
    # Connection strings have keys in them.
    hidden_settings = re.compile(f"{SafeExceptionReporterFilter.hidden_settings.pattern}|CONNECTION", re.IGNORECASE)
