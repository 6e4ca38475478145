import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feeds import opml
from feeds.opml import BadOpml, Entry
from tests import effort

pytestmark = pytest.mark.once

LISTS = Path(__file__).parent / "lists"
BUECHER = ("https://buecher.example.org/feed", "Bücher für Kölner", "https://buecher.example.org/")


def said(entries):
    return [(entry.url, entry.title, entry.site_url) for entry in entries]


def read(name):
    return said(opml.read((LISTS / name).read_bytes()))


def of(body):
    return f'<opml version="2.0"><body>{body}</body></opml>'.encode()


def problem(data):
    with pytest.raises(BadOpml) as caught:
        opml.read(data)
    return str(caught.value)


# Lists of other readers


def test_folders_are_read_through_and_nothing_is_left_out():
    deep_field = ("https://deepfield.example.org/atom.xml", "Deep Field", "https://deepfield.example.org/")

    assert read("folders.opml") == [
        deep_field,
        ("https://tides.example.org/rss?format=full&lang=en", "Tides & Moons", "https://tides.example.org/"),
        deep_field,
    ]
    assert [title for _, title, _ in read("deep.opml")] == ["Four folders down", "Beside them", "Below a feed"]


def test_what_one_reader_adds_for_itself_does_not_matter():
    assert read("namespaces.opml") == [
        ("https://hill.example.org/rss.xml", "The Hill Paper", "https://hill.example.org/")
    ]


def test_capitals_do_not_matter_and_what_is_no_feed_is_passed_over():
    assert read("capitals.opml") == [
        ("https://shouting.example.org/rss", "Shouting", "https://shouting.example.org/"),
        ("https://oldhand.example.org/index.rdf", "Old hand", ""),
    ]


def test_a_title_that_only_repeats_the_url_is_none():
    assert read("bare.opml") == [
        ("https://untitled.example.org/feed", "", ""),
        ("https://namesake.example.org/feed", "", ""),
        ("https://spaces.example.org/feed", "Written over two lines", ""),
    ]


@pytest.mark.parametrize("name", ["latin1.opml", "windows.opml", "utf16.opml", "mark.opml"])
def test_a_file_may_be_in_the_encoding_that_it_says(name):
    assert read(name) == [BUECHER]


def test_nonsense_is_read_for_whoever_reports_it():
    entries = opml.read((LISTS / "damaged.opml").read_bytes())

    assert [entry.title for entry in entries][:3] == ["First", "No address", "A file of the machine"]
    assert [(entry.url, entry.line) for entry in entries][1:3] == [("", 5), ("file:///etc/passwd", 6)]
    assert len(entries) == 8


def test_empty_lines_before_it_do_not_matter():
    assert opml.read(b'\r\n\n <?xml version="1.0"?><opml/>') == []


# Refused lists


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "no element found"),
        (b"PK\3\4", "not valid XML"),
        (b"\0" * 100, "not valid XML"),
        (b"<opml><body>", "no element found"),
        (b'{"feeds": []}', "not valid XML"),
        (of('<outline text="Salt & Pepper"/>'), ". Write & as &amp;."),
        (of('<outline text="&nbsp;"/>'), ". Write & as &amp;."),
        (b"<html><body/></html>", "it begins with <html>, not <opml>."),
        (
            b'<rss version="2.0"/>',
            "begins with <rss>, not <opml>. It is a feed itself: add its URL with `manage.py feed add`.",
        ),
        (b'<feed xmlns="http://www.w3.org/2005/Atom"/>', "begins with <feed>, not <opml>. It is a feed itself"),
        (
            of('\n\n<outline text="Bücher"/>').replace("ü".encode(), b"\xfc"),
            "Line 3 has a byte that is not valid UTF-8",
        ),
        (b'<?xml version="1.0" encoding="UTF-8"?>\n<opml text="\xe4"/>', "Line 2 has a byte that is not valid UTF-8"),
        (b'<?xml version="1.0" encoding="UTF-16"?><opml/>', "encoding specified in XML declaration is incorrect"),
        (b'<?xml version="1.0" encoding="nonsense"?><opml/>', "unknown encoding: nonsense. Save it as UTF-8."),
        (b'<?xml version="1.0" encoding="gb2312"?><opml/>', "multi-byte encodings are not supported"),
        (b'<?xml version="1.0" encoding="punycode"?><opml/>', "The encoding of the file is not supported"),
        (b'<?xml version="1.0" encoding="zlib"?><opml/>', "The encoding of the file is not supported"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_is_no_list_is_told(data, told):
    assert told in problem(data)


BILLION = '<!DOCTYPE opml [<!ENTITY a "ha">{}]>'.format(
    "".join(f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefghi", "bcdefghij", strict=True))
)


@pytest.mark.parametrize(
    "data",
    [
        f'{BILLION}<opml><body><outline text="&j;"/></body></opml>',
        '<!DOCTYPE opml [<!ENTITY x SYSTEM "file:///etc/passwd">]><opml><body><outline text="&x;"/></body></opml>',
        '<!DOCTYPE opml SYSTEM "http://127.0.0.1:1/x.dtd"><opml/>',
        '<!DOCTYPE opml [<!ENTITY % p SYSTEM "http://127.0.0.1:1/x.dtd">%p;]><opml/>',
        "<!DOCTYPE opml><opml/>",
    ],
    ids=["bomb", "file", "address", "parameter", "bare"],
)
def test_a_document_type_is_refused_before_anything_of_it_is_done(data):
    """F13: entity bombs and external entities."""
    began = time.process_time()

    assert problem(data.encode()).startswith("The list must not declare a document type or entities.")
    assert problem(data.encode("utf-16")).startswith("The list must not declare a document type or entities.")

    assert effort.since(began) < 1


FEED = '<outline xmlUrl="https://a.example.org"/>'


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"<opml>" + b"<outline>" * 1_000_000, "nested more than 50 deep"),
        (of("<o/>" * 200_000), "more than 100,000 elements"),
        (of(FEED * 10_001), "more than 10,000 feeds. Split the file."),
        (b"<opml>" + b" " * opml.MOST_BYTES, "larger than the limit of 10,485,760 bytes"),
        (b"<opml a='" + b"a" * (opml.MOST_BYTES - 100), "not valid XML"),
        (b"<opml>" + b"\xff" * (opml.MOST_BYTES - 100), "Line 1 has a byte that is not valid UTF-8"),
        (b"<?xml " * (opml.MOST_BYTES // 6), "not valid XML"),
        (b"<?xml encoding=" * (opml.MOST_BYTES // 15), "not valid XML"),
        ("<opml {}/>".format(" ".join(f"a{n}='{n}'" for n in range(100_000))).encode(), ""),
    ],
    ids=["deep", "elements", "feeds", "long", "token", "bytes", "declarations", "encodings", "attributes"],
)
def test_a_hostile_file_costs_little(data, told):
    tracemalloc.start()
    began = time.process_time()

    if told:
        assert told in problem(data)
    else:
        assert opml.read(data) == []

    took, (_, peak) = effort.since(began), tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert took < 5
    assert peak < 100 * 2**20


def test_as_many_as_are_allowed_are_read():
    assert len(opml.read(of(FEED * opml.MOST_ENTRIES))) == opml.MOST_ENTRIES
    # The two enclosing elements count towards the depth.
    folders = opml.MOST_DEPTH - 3
    assert len(opml.read(of("<outline>" * folders + FEED + "</outline>" * folders))) == 1


# Writing

texts = st.text(st.characters(exclude_categories=[]), max_size=50)
urls = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FFF, exclude_categories=["Z", "C"]), min_size=1).map(
    lambda text: f"https://{text}"
)


def speakable(text):
    """Return the text as OPML can express it: XML excludes some characters, and white space collapses."""
    return " ".join(opml._UNREPRESENTABLE.sub("\ufffd", text).split())


@settings(deadline=None)
@given(st.lists(st.builds(Entry, urls, texts, st.just("") | urls)))
def test_what_was_written_is_read_again(entries):
    read = opml.read(opml.write(entries))

    assert said(read) == [
        (entry.url, "" if speakable(entry.title) == entry.url else speakable(entry.title), entry.site_url)
        for entry in entries
    ]
    assert opml.write(read) == opml.write(opml.read(opml.write(read)))


def test_a_list_is_written_for_any_reader():
    entries = [
        Entry("https://tides.example.org/?a=1&b=2", 'Ebb "&" <flow>', "https://tides.example.org/"),
        Entry("https://bare.example.org/feed"),
    ]

    assert opml.write(entries).decode() == (
        "<?xml version='1.0' encoding='utf-8'?>\n"
        '<opml version="2.0">\n'
        "  <head>\n"
        "    <title>Feeds</title>\n"
        "  </head>\n"
        "  <body>\n"
        '    <outline type="rss" text="Ebb &quot;&amp;&quot; &lt;flow&gt;" title="Ebb &quot;&amp;&quot; &lt;flow&gt;"'
        ' xmlUrl="https://tides.example.org/?a=1&amp;b=2" htmlUrl="https://tides.example.org/" />\n'
        '    <outline type="rss" text="https://bare.example.org/feed" xmlUrl="https://bare.example.org/feed" />\n'
        "  </body>\n"
        "</opml>\n"
    )


@settings(deadline=None)
@given(st.binary() | st.text().map(lambda text: of(f"<outline text='{text}'>")))
def test_nothing_else_than_a_reason_comes_of_anything(data):
    found = read_or_refused(data)

    assert isinstance(found, list) or (len(found) > 20 and found.endswith("."))


def read_or_refused(data):
    try:
        return opml.read(data)
    except BadOpml as error:
        return str(error)
