import pytest

from work.sql import portable, returning

# The parameters of fixtures that try both writers of the lifecycle. Not every database has the first one.
WRITERS = [
    pytest.param(returning, id="fast", marks=pytest.mark.only_on(*returning.FAST_VENDORS)),
    pytest.param(portable, id="portable"),
]
