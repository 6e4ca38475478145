import os
import warnings

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# whitenoise reads static files synchronously. This is harmless because they are small, so ignore the warning.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")
django.setup(set_prefix=False)

# Imported only after django.setup(), because these modules need the settings.
from config.handler import Handler  # noqa: E402
from config.start import refuse_an_older_schema  # noqa: E402

refuse_an_older_schema()

application = Handler()
