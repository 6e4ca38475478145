import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade_understanding.tables import kinds
from ade_understanding.tables.kinds import AMOUNT, DATE, DECIMAL, PERCENTAGE, TEXT

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("texts", "kind", "values"),
    [
        (["12", "1,250", "3.5"], DECIMAL, ["12", "1250", "3.5"]),
        (["12,50", "1.234", "1.234,56"], DECIMAL, ["12.50", "1234", "1234.56"]),
        (["1.234", "0.459"], DECIMAL, ["1.234", "0.459"]),
        (["1,234", "2,500"], DECIMAL, ["1234", "2500"]),
        (["1.234", "2.500"], DECIMAL, ["1234", "2500"]),
        (["1'234.50", "1 234.50"], DECIMAL, ["1234.50", "1234.50"]),
        (["1.234.567", "12"], DECIMAL, ["1234567", "12"]),
        (["-5", "−5", "5-", "(5)", "–"], DECIMAL, ["-5", "-5", "-5", "-5", None]),
        ([".5", "12*", "**3", "4†"], DECIMAL, ["0.5", "12", "3", "4"]),
        (["€ 12.50", "3.00", "1,000.00"], AMOUNT, ["12.50 EUR", "3.00", "1000.00"]),
        (["12,50 EUR", "-3,00 €"], AMOUNT, ["12.50 EUR", "-3.00 EUR"]),
        (["($3.00)", "$-4"], AMOUNT, ["-3.00 USD", "-4 USD"]),
        (["19 %", "7,5%", "5%"], PERCENTAGE, ["19", "7.5", "5"]),
        (["2026-05-01", "2026-12-31"], DATE, ["2026-05-01", "2026-12-31"]),
        (["1.5.2026", "31.12.26"], DATE, ["2026-05-01", "2026-12-31"]),
        (["1/5/2026", "31/12/2026"], DATE, ["2026-05-01", "2026-12-31"]),
        (["5/1/2026", "12/31/2026"], DATE, ["2026-05-01", "2026-12-31"]),
        (["1 May 2026", "31. Dez. 2026"], DATE, ["2026-05-01", "2026-12-31"]),
        (["May 1, 2026", "March 3rd, 2026"], DATE, ["2026-05-01", "2026-03-03"]),
        (["2026-05-01 08:30:00", ""], DATE, ["2026-05-01", None]),
        (["30.2.2026", "31.4.2026"], TEXT, [None, None]),
        (["12", "13", "14", "15", "see below"], DECIMAL, ["12", "13", "14", "15", None]),
        (["12", "13", "see below"], TEXT, [None] * 3),
        (["n/a", "-", ""], TEXT, [None] * 3),
        (["1-2", "A4", "12 kg"], TEXT, [None] * 3),
        (["9" * 41, "1"], TEXT, [None, None]),
    ],
)
def test_the_values_of_a_column_are_read_together(texts, kind, values):
    assert kinds.read([texts]) == [(kind, values)]


def test_the_decimal_mark_of_other_columns_decides_if_a_column_shows_none():
    assert kinds.read([["1.234"], ["12.50", "0.5"]])[0].values == ["1.234"]
    assert kinds.read([["1.234"], ["12,50", "0,5"]])[0].values == ["1234"]


@given(
    st.lists(
        st.lists(st.text(alphabet="0123456789.,'-()%€$ /ax\u2009Ⅷ", max_size=12), min_size=3, max_size=3), max_size=4
    )
)
def test_any_texts_have_values_in_the_normal_form_of_their_kind(columns):
    for texts, (kind, values) in zip(columns, kinds.read(columns), strict=True):
        assert len(values) == len(texts)
        assert kind != TEXT or not any(values)
        for value in values:
            if value is not None and kind in (DECIMAL, PERCENTAGE):
                float(value)
