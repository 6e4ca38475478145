import hashlib
import random
import re
import zipfile
import zlib

import pytest

from documents.extraction import ExtractionFailed
from documents.extraction.local import extract as judged
from tests import effort
from tests.extractor.extracting import DOCX, PDF, XLSX, extract, written
from tests.extractor.pdfs import bomb, by_hand, long_pdf, pdf_of, says, stream, with_content

pytestmark = [pytest.mark.once, pytest.mark.long]

# The string with which the standard security handler pads passwords.
PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")
SECONDS = 10
# Which of these limits is hit first depends on the machine.
HEAVY = ("too_large", "too_slow")


def failure(file, content_type=PDF, first=1, last=25):
    """Return the error code that a worker sees, and check that the failure is permanent, explained, in time and without
    output.
    """
    directory = file.parent / "out"
    directory.mkdir(exist_ok=True)
    ended = {}
    with pytest.raises(ExtractionFailed) as caught:
        judged(file, content_type, first, last, directory, wall_seconds=60, on_start=lambda c: ended.update(child=c))
    assert caught.value.permanent, caught.value
    assert not (directory / "pages.json").exists()
    # One sentence says what was wrong, and another what to do.
    assert re.fullmatch(r"(This|Page \d+|Reading|The reader) .+\. [A-Z].+\.", caught.value.message, re.DOTALL)
    assert effort.usual(ended["child"].ended.cpu_seconds) < SECONDS
    return caught.value.code


def made(tmp_path, content):
    return written(tmp_path / "hostile.pdf", content)


# Encrypted: RC4 with 40 and 128 bits, AES with 128 and 256 bits, and an unknown handler.

OWNER, USER = "<" + "41" * 32 + ">", "<" + "42" * 32 + ">"
ENCRYPTIONS = {
    "rc4-40": f"/Filter/Standard/V 1/R 2/P -4/O {OWNER}/U {USER}",
    "rc4-128": f"/Filter/Standard/V 2/R 3/Length 128/P -4/O {OWNER}/U {USER}",
    "aes-128": f"/Filter/Standard/V 4/R 4/Length 128/P -4/O {OWNER}/U {USER}/StmF/StdCF/StrF/StdCF"
    "/CF<</StdCF<</CFM/AESV2/AuthEvent/DocOpen/Length 16>>>>",
    "aes-256": "/Filter/Standard/V 5/R 6/Length 256/P -4/StmF/StdCF/StrF/StdCF"
    "/CF<</StdCF<</CFM/AESV3/AuthEvent/DocOpen/Length 32>>>>"
    f"/O <{'41' * 48}>/U <{'42' * 48}>/OE <{'43' * 32}>/UE <{'44' * 32}>/Perms <{'45' * 16}>",
    "another": "/Filter/Adobe.PubSec/V 4/SubFilter/adbe.pkcs7.s5/Recipients[<00>]",
}


@pytest.mark.parametrize("kind", ENCRYPTIONS)
def test_one_that_needs_a_password(tmp_path, kind):
    trailer = f"/ID[<{'00' * 16}><{'00' * 16}>]/Encrypt<<{ENCRYPTIONS[kind]}>>"

    assert failure(made(tmp_path, with_content(says("Secret"), trailer=trailer))) == "encrypted"


def rc4(key, data):
    state, j = list(range(256)), 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)


def test_one_that_opens_without_a_password_is_read_although_it_is_encrypted(tmp_path):
    owner = rc4(hashlib.md5(PADDING, usedforsecurity=False).digest()[:5], PADDING)
    seed = PADDING + owner + (-4).to_bytes(4, "little", signed=True) + bytes(16)
    key = hashlib.md5(seed, usedforsecurity=False).digest()[:5]
    own = hashlib.md5(key + b"\4\0\0\0\0", usedforsecurity=False).digest()[:10]
    content = stream(rc4(own, b"BT /F1 12 Tf 72 700 Td (Anybody may read this) Tj ET"))
    trailer = f"/ID[<{'00' * 16}><{'00' * 16}>]/Encrypt<</Filter/Standard/V 1/R 2/P -4/O <{owner.hex()}>"

    file = made(tmp_path, with_content(content, trailer=f"{trailer}/U <{rc4(key, PADDING).hex()}>>>"))

    assert extract(file, PDF).pages[0]["text"] == "Anybody may read this"


# Damaged


@pytest.mark.parametrize("share", [0.0001, 0.02, 0.3, 0.5, 0.9, 0.99])
def test_one_that_is_cut_off(tmp_path, share):
    whole = long_pdf(tmp_path / "whole.pdf", 10).read_bytes()

    assert failure(made(tmp_path, whole[: max(1, int(len(whole) * share))])) == "malformed"


@pytest.mark.parametrize("share", [0.5, 0.6, 0.9])
def test_one_that_is_cut_off_although_it_begins_with_its_end(tmp_path, share):
    """In a linearized file pdfium still finds the pages, and a part of the text of the last one."""
    whole = with_content(stream("BT /F1 12 Tf 72 700 Td (text) Tj ET\n" * 99))
    end = b"trailer\n<</Size 6/Root 1 0 R>>\nstartxref\n0\n%%EOF\n"
    whole = whole[:15] + end + whole[15:]

    assert failure(made(tmp_path, whole[: int(len(whole) * share)])) == "malformed"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"%PDF-1.7",
        b"%PDF-1.7\n%%EOF\n",
        b"not a PDF at all" * 100,
        b"PK\x03\x04" + b"%PDF-1.7 inside of something else",
        b"<html>%PDF-1.7</html>",
        bytes(10_000),
        by_hand(["<</Type/Catalog>>"]),
        by_hand(["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[]/Count 0>>"]),
        by_hand(["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[2 0 R]/Count 1>>"]),
        by_hand(["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "3 0 R"]),
    ],
    ids=range(11),
)
def test_one_that_is_none(tmp_path, content):
    assert failure(made(tmp_path, content)) == "malformed"


def test_a_damaged_table_of_places_is_mended_when_the_file_is_whole(tmp_path):
    whole = pdf_of(tmp_path / "whole.pdf", "All is here").read_bytes()
    damaged = whole.replace(b"startxref\n", b"startxref\n9")

    assert extract(made(tmp_path, damaged), PDF).pages[0]["text"] == "All is here"


def test_a_table_of_places_that_leads_back_to_itself(tmp_path):
    data = with_content(says("Round and round"))
    start = data.rindex(b"startxref\n") + 10
    place = data[start:].split()[0]

    looping = data.replace(b"/Root 1 0 R", b"/Root 1 0 R/Prev " + place)
    outcome = extract(made(tmp_path, looping), PDF)

    assert effort.usual(outcome.ended.cpu_seconds) < SECONDS
    assert outcome.pages[0]["text"] == "Round and round"


# False counts and endless structures


@pytest.mark.parametrize(("count", "code"), [(30_000, "too_large"), (20_000, "malformed"), (-5, "malformed")])
def test_one_that_claims_pages_which_it_has_not(tmp_path, count, code):
    data = with_content(says("Just one")).replace(b"/Count 1>>", b"/Count %d>>" % count)

    if count < 0:
        assert extract(made(tmp_path, data), PDF).document["pages_total"] == 1
    else:
        assert failure(made(tmp_path, data), first=1, last=1) == code


@pytest.mark.parametrize("depth", [2_000, 100_000])
def test_a_tree_of_pages_that_is_deep(tmp_path, depth):
    inner = [f"<</Type/Pages/Kids[{n + 3} 0 R]/Count 1/Parent {n + 1} 0 R>>" for n in range(depth)]
    page = f"<</Type/Page/Parent {depth + 1} 0 R/MediaBox[0 0 9 9]>>"

    assert failure(made(tmp_path, by_hand(["<</Type/Catalog/Pages 2 0 R>>", *inner, page]))) == "malformed"


def test_objects_that_are_nested_without_end(tmp_path):
    file = made(tmp_path, with_content("[" * 200_000 + "]" * 200_000))

    outcome = extract(file, PDF)

    assert effort.usual(outcome.ended.cpu_seconds) < SECONDS
    assert outcome.ended.returncode == 1 or not outcome.pages[0]["has_text"]


def test_forms_that_draw_themselves(tmp_path):
    form = stream("/X Do", "/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 6 0 R>>>>")
    page = "/MediaBox[0 0 595 842]/Resources<</Font<</F1 5 0 R>>/XObject<</X 6 0 R>>>>"
    content = stream("/X Do BT /F1 12 Tf 72 700 Td (After all) Tj ET")

    outcome = extract(made(tmp_path, with_content(content, page=page, more=[form])), PDF)

    assert effort.usual(outcome.ended.cpu_seconds) < SECONDS
    assert outcome.pages[0]["text"] == "After all"


def test_forms_that_draw_others_a_billion_times(tmp_path):
    forms = [
        stream(
            f"/X{n} Do " * 10, f"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X{n} {n + 7} 0 R>>>>"
        )
        for n in range(9)
    ]
    last = stream("0 0 1 1 re f", "/Type/XObject/Subtype/Form/BBox[0 0 9 9]")
    page = "/MediaBox[0 0 595 842]/Resources<</XObject<</X 6 0 R>>>>"

    assert failure(made(tmp_path, with_content(stream("/X Do"), page=page, more=[*forms, last]))) in HEAVY


# Bombs


CONTENTS = [b" ", b"0 0 1 1 re f\n", b"BT /F1 9 Tf 9 9 Td (more) Tj ET\n", b"q\n", b"[[["]


@pytest.mark.parametrize(("content", "times"), [*((each, 1) for each in CONTENTS), (b" ", 2), (b" ", 4)])
def test_a_page_that_unpacks_to_gigabytes(tmp_path, content, times):
    file = made(tmp_path, with_content(bomb(content, 3 << 30, times)))

    assert file.stat().st_size < 64 << 20
    assert failure(file) in HEAVY


def test_a_picture_of_thirty_gigabytes_is_not_unpacked(tmp_path):
    picture = "/Type/XObject/Subtype/Image/Width 100000/Height 100000/ColorSpace/DeviceRGB/BitsPerComponent 8"
    image = bomb(b"\0", 1 << 30, 1).replace(b"<<", b"<<" + picture.encode(), 1)
    page = "/MediaBox[0 0 595 842]/Resources<</XObject<</X 6 0 R>>/Font<</F1 5 0 R>>>>"
    content = stream("/X Do BT /F1 12 Tf 72 700 Td (Beside it) Tj ET")

    outcome = extract(made(tmp_path, with_content(content, page=page, more=[image])), PDF)

    assert (outcome.pages[0]["text"], outcome.pages[0]["images"]) == ("Beside it", 1)
    assert outcome.ended.max_rss_bytes < 200 << 20


def test_a_predictor_with_lines_of_gigabytes(tmp_path):
    content = stream(
        zlib.compress(bytes(9999)), "/Filter/FlateDecode/DecodeParms<</Predictor 12/Columns 2147483647/Colors 4>>"
    )

    outcome = extract(made(tmp_path, with_content(content)), PDF)

    assert effort.usual(outcome.ended.cpu_seconds) < SECONDS
    assert outcome.ended.returncode == 1 or not outcome.pages[0]["has_text"]


def test_a_page_of_a_million_objects(tmp_path):
    lines = (f"BT /F1 1 Tf {n % 590} {n // 590} Td (a b) Tj ET" for n in range(500_000))
    drawn = "\n0 0 1 1 re f" * 500_000

    outcome = extract(made(tmp_path, with_content(stream("\n".join(lines) + drawn))), PDF)

    assert effort.usual(outcome.ended.cpu_seconds) < SECONDS
    assert outcome.ended.signal == "SIGXCPU" or outcome.code == "too_large"


def test_a_file_of_a_million_objects(tmp_path):
    file = made(tmp_path, with_content(says("Among many"), more=[b"null"] * 1_000_000))

    outcome = extract(file, PDF)

    assert effort.usual(outcome.ended.cpu_seconds) < SECONDS
    assert outcome.pages[0]["text"] == "Among many"


# Pages with extreme sizes

BOXES = [
    "0 0 1e9 1e9",
    "0 0 0 0",
    "-5 -5 -1 -1",
    "595 842 0 0",
    "0 0 1e300 1",
    "nan inf 1 1",
    "0 0 .001 1e6",
    "(a) (b) 1",
]


@pytest.mark.parametrize("box", BOXES)
def test_a_page_of_no_size_that_anybody_could_print(tmp_path, box):
    outcome = extract(made(tmp_path, with_content(says("Words are placed"), page=f"/MediaBox[{box}]")), PDF)

    if outcome.ended.returncode == 0:
        assert [0 <= share <= 1 for word in outcome.pages[0]["words"] for share in word[1:]] == [True] * 12
    else:
        assert outcome.code == "malformed"


@pytest.mark.parametrize("scale", ["1e30", "-1e38", "0", "1e-30"])
def test_words_that_lie_anywhere_have_places_within_the_page(tmp_path, scale):
    content = stream(f"{scale} 0 0 {scale} 1e20 -1e20 cm BT /F1 12 Tf 72 700 Td (Far away) Tj ET")

    page = extract(made(tmp_path, with_content(content)), PDF).pages[0]

    assert all(0 <= share <= 1 for word in page["words"] for share in word[1:])


# Actions


def test_scripts_launches_and_entities_stay_what_they_are(tmp_path):
    trap = tmp_path / "sprung"
    launch = f"<</S/Launch/F(/bin/touch)/Unix<</F(/usr/bin/touch)/P({trap})>>>>"
    script = "<</S/JavaScript/JS(app.alert\\(1\\); while\\(true\\);)>>"
    entities = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b SYSTEM "file:///etc/passwd">]><x>&a;&b;</x>'
    catalog = f"/OpenAction {launch}/AA<</WC {script}>>/Names<</JavaScript<</Names[(a) {script}]>>>>/Metadata 6 0 R"
    widget = "<</Type/Annot/Subtype/Widget/FT/Tx/V(Filled)/Rect[0 0 99 99]>>"
    page = f"/MediaBox[0 0 595 842]/AA<</O {launch}>>/Annots[{widget}]"
    catalog += "/AcroForm<</XFA 6 0 R/Fields[]>>"
    metadata = stream(entities, "/Type/Metadata")

    content = with_content(says("Harmless"), page=page, catalog=catalog, more=[metadata])
    outcome = extract(made(tmp_path, content), PDF)

    assert outcome.pages[0]["text"] == "Harmless"
    assert not trap.exists()


def test_a_picture_within_the_text_that_never_ends(tmp_path):
    content = stream("BT /F1 12 Tf 72 700 Td (Before) Tj ET BI /W 9 /H 9 /BPC 8 /CS /RGB ID " + "\0\1" * 50_000)

    outcome = extract(made(tmp_path, with_content(content)), PDF)

    assert outcome.pages[0]["text"] == "Before"


def test_one_that_is_an_archive_too(tmp_path):
    whole = pdf_of(tmp_path / "whole.pdf", "Two in one")
    with zipfile.ZipFile(whole, "a") as archive:
        archive.writestr("word/document.xml", "<w/>")

    assert extract(whole, PDF).pages[0]["text"] == "Two in one"
    assert failure(whole, DOCX) == "malformed"
    assert failure(whole, XLSX) == "malformed"


@pytest.mark.parametrize("seed", range(60))
def test_damage_anywhere_ends_in_text_or_in_words(tmp_path, seed):
    chance = random.Random(seed)
    data = bytearray(long_pdf(tmp_path / "whole.pdf", 3).read_bytes())
    for _ in range(chance.choice([1, 10, 300])):
        data[chance.randrange(len(data))] = chance.randrange(256)

    file = made(tmp_path, bytes(data))

    outcome = extract(file, PDF, 1, 25)
    if outcome.ended.returncode == 0:
        assert outcome.document["pages_total"] >= 1
    elif outcome.ended.reason == "exited":
        assert outcome.code in ("malformed", "encrypted", *HEAVY)
    else:
        assert outcome.ended.signal in ("SIGSEGV", "SIGABRT", "SIGTRAP", "SIGILL", "SIGXCPU")
