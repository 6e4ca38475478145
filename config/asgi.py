import os
import warnings

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# whitenoise reads static files synchronously; they are small, and one line per process about it helps nobody.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")
django.setup(set_prefix=False)

# Behind the settings: it reads them.
from config.handler import Handler  # noqa: E402

application = Handler()
