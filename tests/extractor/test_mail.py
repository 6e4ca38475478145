from email.message import EmailMessage

import pytest

from tests import effort
from tests.extractor.extracting import EML, extract, written

pytestmark = [pytest.mark.once, pytest.mark.long]


def mail(**headers):
    message = EmailMessage()
    for name, value in {"From": "Ann <ann@x.example>", "To": "bob@x.example", "Subject": "Hello", **headers}.items():
        message[name] = value
    return message


def text_of(tmp_path, message):
    content = message if isinstance(message, bytes) else bytes(message)
    (page,) = extract(written(tmp_path / "a.eml", content), EML).pages
    return page["text"]


HEADERS = "From: Ann <ann@x.example>\nTo: bob@x.example\nSubject: Hello"


def test_headers_come_before_the_text(tmp_path):
    message = mail(Subject="Größe 😀", Date="Tue, 03 Feb 2026 04:05:06 +0000", Cc="cc@x.example")
    message.set_content("First line\r\nsecond line\n\nNext paragraph\n")

    assert text_of(tmp_path, message) == (
        "From: Ann <ann@x.example>\nTo: bob@x.example\nCc: cc@x.example\nDate: Tue, 03 Feb 2026 04:05:06 +0000\n"
        "Subject: Größe 😀\n\nFirst line\nsecond line\n\nNext paragraph"
    )


def test_the_plain_text_is_preferred(tmp_path):
    message = mail()
    message.set_content("as text")
    message.add_alternative("<p>as <b>HTML</b></p>", subtype="html")

    assert text_of(tmp_path, message) == f"{HEADERS}\n\nas text"


@pytest.mark.parametrize("plain", [None, " \n"])
def test_html_is_read_where_there_is_no_other_text(tmp_path, plain):
    message = mail()
    if plain:
        message.set_content(plain)
        message.add_alternative("<script>x</script><p>as <b>HTML</b></p>", subtype="html")
    else:
        message.set_content("<script>x</script><p>as <b>HTML</b></p>", subtype="html")

    assert text_of(tmp_path, message) == f"{HEADERS}\n\nas HTML"


def test_attachments_are_listed_and_not_read(tmp_path):
    message = mail()
    message.set_content("see below")
    message.add_attachment(b"%PDF" + bytes(996), maintype="application", subtype="pdf", filename="Größe.pdf")
    message.add_attachment("secret,1\n", subtype="csv", filename="../../etc/passwd")
    inner = mail(Subject="Inner")
    inner.set_content("not read")
    message.add_attachment(inner)

    text = text_of(tmp_path, message)

    assert text == (
        f"{HEADERS}\n\nsee below\n\nAttachments:\nGröße.pdf (1,000 bytes)\n../../etc/passwd (9 bytes)\nInner (a mail)"
    )


def test_a_text_that_is_attached_is_an_attachment(tmp_path):
    message = mail()
    message.set_content("body")
    message.add_attachment("notes", filename="notes.txt")

    assert text_of(tmp_path, message) == f"{HEADERS}\n\nbody\n\nAttachments:\nnotes.txt (6 bytes)"


@pytest.mark.parametrize("charset", ["iso-8859-1", "utf-8", "windows-1252", "nonsense", "rot13", ""])
def test_a_text_in_the_charset_that_it_names(tmp_path, charset):
    body = "Schöne Grüße aus Köln und Düsseldorf".encode(charset if charset in ("utf-8",) else "iso-8859-1")
    head = HEADERS.replace("\n", "\r\n").encode() + f"\r\nContent-Type: text/plain; charset={charset}\r\n\r\n".encode()

    assert text_of(tmp_path, head + body).endswith("Schöne Grüße aus Köln und Düsseldorf")


def test_damaged_base64_is_no_reason_to_refuse(tmp_path):
    head = HEADERS.encode() + b"\nContent-Type: text/plain\nContent-Transfer-Encoding: base64\n\n"

    assert "plain" in text_of(tmp_path, head + b"cGxhaW4gdGV4dA=?!\n")


@pytest.mark.parametrize(
    "content", [b"", b"no headers at all", b"\n\nFrom: a", bytes(range(256)) * 9, b"%PDF-1.7 ...", b"X: y\n\nz"]
)
def test_what_is_no_mail(tmp_path, content):
    assert extract(written(tmp_path / "a.eml", content), EML).code == "malformed"


def nested_parts(depth):
    lines = [HEADERS]
    for level in range(depth):
        lines.append(f'Content-Type: multipart/mixed; boundary="b{level}"\n\n--b{level}')
    return "\n".join([*lines, "Content-Type: text/plain\n\nat the bottom\n"]).encode()


def nested_mails(depth):
    return (f"{HEADERS}\nContent-Type: message/rfc822\n\n" * depth + f"{HEADERS}\n\nat the bottom").encode()


@pytest.mark.parametrize("depth", [31, 1000, 20_000])
def test_parts_nested_too_deeply(tmp_path, depth):
    outcome = extract(written(tmp_path / "a.eml", nested_parts(depth)), EML)

    assert outcome.code == "malformed"
    assert effort.usual(outcome.ended.cpu_seconds) < 10


def test_mails_nested_too_deeply(tmp_path):
    outcome = extract(written(tmp_path / "a.eml", nested_mails(1000)), EML)

    assert outcome.code == "malformed"
    assert effort.usual(outcome.ended.cpu_seconds) < 10


def test_parts_nested_a_little_are_read(tmp_path):
    assert text_of(tmp_path, nested_parts(10)).endswith("at the bottom")


HOSTILE = {
    "a header": b"Subject: " + b"=?utf-8?q?a?= " * 100_000 + b"\n\nx",
    "an address": b"From: " + b"(" * 500_000 + b"\n\nx",
    "headers": HEADERS.encode() + b"".join(b"\nX-%d: y" % n for n in range(200_000)) + b"\n\nx",
    "parameters": HEADERS.encode() + b"\nContent-Type: text/plain;" + b" x*0=y;" * 100_000 + b"\n\nx",
    "boundaries": HEADERS.encode() + b"\nContent-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * 50_000,
    "a name": HEADERS.encode() + b"\nContent-Type: x/y; name=" + b"a" * 900_000 + b"\n\nx",
    "folds": b"Subject: x" + b"\n " * 400_000 + b"\n\nx",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_of_anything_ends(tmp_path, name):
    outcome = extract(written(tmp_path / "a.eml", HOSTILE[name]), EML)

    assert effort.usual(outcome.ended.cpu_seconds) < 10
    assert (
        outcome.ended.returncode == 0 or outcome.ended.signal == "SIGXCPU" or outcome.code in ("too_large", "malformed")
    )
