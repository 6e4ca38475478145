import config  # noqa: F401  # programs can be imported from here on
