"""The settings of ADE as it is deployed, for clients that come without a proxy."""

from config.settings import *  # noqa: F403  # all of them, whatever is added

SECURE_SSL_REDIRECT = False
