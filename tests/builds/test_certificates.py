import pytest

from builds import uv

pytestmark = pytest.mark.once


def test_uv_trusts_whom_the_system_trusts():
    assert uv.variables()["UV_SYSTEM_CERTS"] == "1"


def test_an_operator_may_say_otherwise(monkeypatch):
    monkeypatch.setenv("UV_SYSTEM_CERTS", "0")

    assert uv.variables()["UV_SYSTEM_CERTS"] == "0"
