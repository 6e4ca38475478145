"""One hostile zip file for each trick, built from raw bytes, because libraries would repair it."""

import io
import stat
import struct
import tracemalloc
import zipfile
import zlib
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from builds import archives, packages
from builds.contents import BadPackage

MANIFEST = b'[configuration]\nname = "invoices"\n'
MEBIBYTE = 2**20
UNIX = 3 << 8


@dataclass
class Entry:
    name: bytes = b"main.py"
    content: bytes = b"x = 1\n"
    method: int = 8
    flags: int = 0
    mode: int = stat.S_IFREG | 0o644
    dos: int = 0
    extra: bytes = b""
    size: int | None = None
    packed_size: int | None = None
    crc: int | None = None
    raw: bytes | None = None
    # Contradictions between the central directory and the entries: another offset, a missing entry, other values in the
    # local header.
    offset: int | None = None
    is_there: bool = True
    local: dict[str, object] = field(default_factory=dict)

    @property
    def bytes(self):
        if self.raw is not None:
            return self.raw
        return deflated(self.content) if self.method == 8 else self.content

    def sizes(self):
        packed = len(self.bytes) if self.packed_size is None else self.packed_size
        crc = zlib.crc32(self.content) if self.crc is None else self.crc
        return crc, packed, len(self.content) if self.size is None else self.size

    def header(self):
        told = {"name": self.name, "flags": self.flags, "method": self.method, "sizes": self.sizes()} | self.local
        fixed = (b"PK\3\4", 20, told["flags"], told["method"], 0, 0x21, *told["sizes"], len(told["name"]), 0)
        return struct.pack("<4s5H3L2H", *fixed) + told["name"]

    def line(self, offset):
        offset = offset if self.offset is None else self.offset
        lengths = (len(self.name), len(self.extra), 0, 0, 0)
        head = (b"PK\1\2", UNIX | 20, 20, self.flags, self.method, 0, 0x21, *self.sizes(), *lengths)
        return struct.pack("<4s6H3L5H2L", *head, self.mode << 16 | self.dos, offset) + self.name + self.extra


def deflated(content, flush=zlib.Z_FINISH):
    deflating = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return deflating.compress(content) + deflating.flush(flush)


def zipped(*entries, manifest=True, count=None, disk=0, shift=0, comment=b"", behind=b""):
    entries = [*([Entry(b"ade.toml", MANIFEST)] if manifest else []), *entries]
    data, lines = bytearray(), bytearray()
    for entry in entries:
        lines += entry.line(len(data))
        data += entry.header() + entry.bytes if entry.is_there else b""
    count = len(entries) if count is None else count
    end = struct.pack("<4s4H2LH", b"PK\5\6", disk, disk, count, count, len(lines), len(data) + shift, len(comment))
    return bytes(data + lines) + end + comment + behind


def problems_of(data):
    with pytest.raises(BadPackage) as caught:
        packages.read_zip(io.BytesIO(data))
    return caught.value.problems


def bomb(size):
    """Return deflated zeros: a thousandth of their size."""
    deflating = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    chunk = bytes(MEBIBYTE)
    return b"".join(deflating.compress(chunk) for _ in range(size // MEBIBYTE)) + deflating.flush()


def overlapping():
    """Return two entries, each with its own header; the second lies within the bytes of the first."""
    manifest, inner = Entry(b"ade.toml", MANIFEST), Entry(b"b.py", b"#" * 500, method=0, is_there=False)
    outer = Entry(b"a.py", inner.header() + inner.bytes, method=0)
    inner.offset = len(manifest.header() + manifest.bytes + outer.header())
    return zipped(manifest, outer, inner, manifest=False)


# What every difference between the two headers of an entry is called.
DIFFERS = "'main.py' differs between the list of entries and its own header, which says "
HOSTILE = {
    "climbs": (Entry(b"../escaped.py"), "The path '../escaped.py' is not allowed: it leads out of the package."),
    "climbs later": (Entry(b"a/../../escaped.py"), "it leads out of the package."),
    "climbs as a folder": (Entry(b"../escaped/", b"", mode=stat.S_IFDIR | 0o755), "it leads out of the package."),
    "absolute": (Entry(b"/tmp/escaped.py"), "it is absolute."),
    "backslash": (Entry(b"..\\escaped.py"), "it contains a backslash."),
    "drive": (Entry(b"C:escaped.py"), "it names a drive."),
    "drive and backslash": (Entry(b"C:\\escaped.py"), "it contains a backslash, it names a drive."),
    "NUL in a name": (Entry(b"main.py\0.txt"), "it contains a NUL character."),
    "newline in a name": (Entry(b"a\nb"), "is not a relative path of letters"),
    "no name": (Entry(b""), "is not a relative path of letters"),
    "dot": (Entry(b"./main.py"), "is not a relative path of letters"),
    "not ASCII": (Entry("mäin.py".encode(), flags=0x800), "is not a relative path of letters"),
    "not Unicode": (Entry(b"m\xe4in.py"), "is not a relative path of letters"),
    "long name": (Entry(b"a/" * 30_000 + b"b"), "A path may have at most 200 characters, not 60001."),
    "symbolic link": (Entry(b"link", b"/etc/passwd", mode=stat.S_IFLNK | 0o777), "'link' must be a file, not a symb"),
    "link as a folder": (Entry(b"link/", b"", mode=stat.S_IFLNK | 0o777), "'link/' must be a folder, not a symb"),
    "Windows link": (Entry(dos=0x400, mode=0), "must be a file, but its attributes say something else."),
    "device": (Entry(mode=stat.S_IFCHR | 0o666), "'main.py' must be a file, not a device."),
    "disk": (Entry(mode=stat.S_IFBLK | 0o666), "not a device."),
    "pipe": (Entry(mode=stat.S_IFIFO | 0o666), "not a pipe."),
    "socket": (Entry(mode=stat.S_IFSOCK | 0o666), "not a socket."),
    "unknown mode": (Entry(mode=0o070000), "not something else."),
    "folder that is called a file": (Entry(mode=stat.S_IFDIR | 0o755), "'main.py' must be a file, not a folder."),
    "folder with bytes": (Entry(b"a/", mode=stat.S_IFDIR | 0o755), "The folder 'a/' must be empty, but has 6 bytes."),
    "hard link": (Entry(extra=struct.pack("<2H", 0xD, 16) + bytes(16)), "'main.py' is not allowed: a link."),
    "another hard link": (Entry(extra=struct.pack("<2H", 0x756E, 16) + bytes(16)), "'main.py' is not allowed: a link."),
    "another name": (Entry(extra=struct.pack("<2H", 0x7075, 8) + bytes(8)), "is not allowed: another name."),
    "64 bits": (Entry(extra=struct.pack("<2HQ", 0x1, 8, 2**40)), "is not allowed: 64-bit sizes."),
    "encrypted": (Entry(flags=0x1), "'main.py' is encrypted."),
    "strongly encrypted": (Entry(flags=0x41), "'main.py' is encrypted."),
    "AES": (Entry(method=99, extra=struct.pack("<2H", 0x9901, 7) + bytes(7)), "is not allowed: a password."),
    "bzip2": (Entry(method=12), "'main.py' is compressed with method 12."),
    "lzma": (Entry(method=14), "compressed with method 14."),
    "unknown method": (Entry(method=4711), "compressed with method 4711."),
    "patch": (Entry(flags=0x20), "compressed with method 8."),
    "ratio": (Entry(content=bytes(MEBIBYTE)), "to 1048576 bytes, more than 100 times"),
    "says less": (Entry(content=b"x" * 5000, size=50), "'main.py' is damaged: it has more than 50 bytes."),
    "says nothing": (Entry(size=0), "'main.py' is damaged: it has more than 0 bytes."),
    "says more": (Entry(size=5000), "'main.py' is damaged: it has 6 bytes instead of 5000, or no end."),
    "stored and says less": (Entry(method=0, size=5), "'main.py' is damaged: it has 6 bytes instead of 5."),
    "other bytes": (Entry(crc=1), "do not match its checksum."),
    "damaged": (Entry(raw=b"\xff" * 6), "it cannot be decompressed to 6 bytes."),
    "unfinished": (Entry(raw=deflated(b"x = 1\n")[:-2]), "or no end."),
    "all but an end": (Entry(raw=deflated(b"x = 1\n", zlib.Z_SYNC_FLUSH)), "it has 6 bytes instead of 6, or no end."),
    "more behind the end": (Entry(raw=deflated(b"x = 1\n") + b"more"), "it has data after its 6 bytes."),
    "other name in its header": (Entry(local={"name": b"other.py"}), "its own header, which says 'other.py'."),
    "longer name in its header": (Entry(local={"name": b"main.py.sh"}), DIFFERS),
    "other sizes in its header": (Entry(local={"sizes": (1, 2, 3)}), DIFFERS),
    "other method in its header": (Entry(local={"method": 0}), DIFFERS),
    "encrypted in its header": (Entry(local={"flags": 1}), DIFFERS),
    "not UTF-8": (Entry(content=b"caf\xe9"), "'main.py' is not UTF-8 text: it has the byte 0xe9 at 3."),
    "UTF-16": (Entry(content="x = 1".encode("utf-16")), "it has the byte 0xff at 0."),
    "picture": (Entry(b"logo.png", b"\x89PNG\r\n\x1a\n\0\0"), "'logo.png' is not UTF-8 text"),
    "NUL in a text": (Entry(content=b"x = '\0'"), "'main.py' contains '\\x00', which the database cannot store."),
    "surrogate": (Entry(content=b"\xed\xa0\x80"), "it has the byte 0xed at 0."),
    "no header": (Entry(offset=7), "The zip file has no entry at byte 7, where one should be."),
    "header behind the end": (Entry(offset=2**32 - 1), "no entry at byte 4294967295, where one should be."),
    "reaches into the list": (Entry(packed_size=500, size=500), "The entry 'main.py' overlaps the list of entries."),
}  # fmt: skip
WHOLE = {
    "twice": (zipped(Entry(), Entry()), "The path 'main.py' occurs 2 times."),
    "twice as byproducts": (zipped(Entry(b".a"), Entry(b".a")), "The path '.a' occurs 2 times."),
    "capital letters": (zipped(Entry(), Entry(b"Main.py")), "differ only in capital letters"),
    "capital letters of a folder": (zipped(Entry(b"a/b"), Entry(b"A/c")), "'a' and 'A' differ only in capital"),
    "sharp s": (zipped(Entry("ß".encode()), Entry(b"SS")), "differ only in capital letters"),
    "accents": (zipped(Entry("\u00e9".encode()), Entry("e\u0301".encode())), "differ only in how accents are written"),
    "accents and capitals": (zipped(Entry("\u00e9".encode()), Entry("E\u0301".encode())), "differ only in capital"),
    "a file and a folder": (zipped(Entry(b"a"), Entry(b"a/b")), "'a' is both a file and a folder."),
    "an empty folder": (zipped(Entry(b"a"), Entry(b"a/", b"", mode=0)), "'a' is both a file and a folder."),
    "the same bytes": (zipped(Entry(), Entry(b"b.py", offset=0)), "The entries 'b.py' and 'ade.toml' overlap."),
    "overlap": (overlapping(), "The entries 'a.py' and 'b.py' overlap."),
    "bytes in all": (zipped(*(Entry(b"%d" % n, b"x" * 300_000, method=0) for n in range(4))), "All files together may"),
    "files": (zipped(*(Entry(b"%d" % n) for n in range(202))), "at most 200 files besides"),
    "entries": (zipped(*(Entry(b".%d" % n) for n in range(1001))), "at most 1000 entries, not 100"),
    "counts less": (zipped(Entry(), count=1), "The length of the list does not match its 1 entries."),
    "counts more": (zipped(Entry(), count=3), "The zip file has no entry at byte"),
    "several parts": (zipped(disk=1), "The zip file is only one of several parts."),
    "list elsewhere": (zipped(shift=-1), "The list of entries is not where the zip file says"),
    "list far away": (zipped(shift=2**31), "The list of entries is not where the zip file says"),
    "before it": (b"MZ" + zipped(), "The list of entries is not where the zip file says"),
    "behind it": (zipped(behind=b"more"), "The list of entries is not where the zip file says"),
    "cut off": (zipped(Entry())[:-30], "This is not a zip file, or it is incomplete."),
    "cut off late": (zipped(Entry())[:-1], "This is not a zip file, or it is incomplete."),
    "nothing": (b"", "This is not a zip file, or it is incomplete."),
    "text": (b"x = 1\n" * 100, "This is not a zip file, or it is incomplete."),
    "only an end": (b"PK\5\6" + bytes(4) + b"\xff" * 14, "The zip file may have at most 1000 entries, not 65535."),
    "empty": (zipped(manifest=False), "The package has no ade.toml at its top."),
}  # fmt: skip
TRICKS = {name: (zipped(entry), expected) for name, (entry, expected) in HOSTILE.items()} | WHOLE


@pytest.mark.parametrize(("data", "expected"), TRICKS.values(), ids=TRICKS.keys())
def test_a_hostile_archive_is_refused_and_nothing_is_written(tmp_path, monkeypatch, data, expected):
    here = tmp_path / "a" / "b"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    before = sorted(tmp_path.rglob("*"))

    problems = problems_of(data)

    assert any(expected in problem for problem in problems), problems
    assert sorted(tmp_path.rglob("*")) == before


def test_the_archives_of_these_tests_are_sound_but_for_their_tricks():
    data = zipped(Entry(), Entry(b"data/t.csv", b"a;b\n", method=0), comment=b"made by a test")

    package = packages.read_zip(io.BytesIO(data))

    assert package.files == {"main.py": "x = 1\n", "data/t.csv": "a;b\n"}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None


def test_all_that_is_wrong_is_told_at_once():
    problems = problems_of(zipped(Entry(b"../a"), Entry(b"b", method=12), Entry(b"c", mode=stat.S_IFLNK)))

    assert len(problems) == 3


def test_problems_of_texts_and_of_the_manifest_are_told_at_once():
    data = zipped(Entry(content=b"\xff"), Entry(b"b.py", crc=1), Entry(b"requirements.txt", b"-r x"), manifest=False)

    problems = problems_of(data)

    assert [problem.split(",")[0] for problem in problems] == [
        "'b.py' is damaged: its 6 bytes do not match its checksum.",
        "'main.py' is not UTF-8 text: it has the byte 0xff at 0.",
        "The package has no ade.toml at its top.",
        "Line 1 of the requirements",
    ]


def sharing(number, at):
    return (Entry(b"%d" % n, offset=at, is_there=False) for n in range(number))


BOMBS = {
    "says that it is small": zipped(Entry(raw=bomb(64 * MEBIBYTE), size=1000)),
    "says that it is large": zipped(Entry(raw=bomb(64 * MEBIBYTE), size=64 * MEBIBYTE)),
    "the same bytes many times": zipped(Entry(raw=bomb(MEBIBYTE), size=MEBIBYTE), *sharing(900, 0)),
    "a list of thousands": zipped(*(Entry(b".%d" % n) for n in range(30_000)), count=1),
    "one long name many times": zipped(Entry(local={"name": b"x" * 65_535}), *sharing(900, len(zipped(count=1)) - 76)),
    "large": zipped(Entry(content=bytes(6 * MEBIBYTE), method=0)),
}  # fmt: skip


@pytest.mark.parametrize("data", BOMBS.values(), ids=BOMBS.keys())
def test_memory_stays_bounded(data):
    tracemalloc.start()
    try:
        problems_of(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 4 * MEBIBYTE + 2 * min(len(data), archives.MOST_BYTES)


def test_no_more_is_read_than_a_package_may_have():
    class Endless(io.RawIOBase):
        read_bytes = 0

        def read(self, size=-1):
            assert size >= 0
            self.read_bytes += size
            return bytes(size)

    endless = Endless()
    with pytest.raises(BadPackage, match="The zip file is larger than 4194304 bytes"):
        packages.read_zip(endless)

    assert endless.read_bytes == archives.MOST_BYTES + 1


@pytest.mark.parametrize("cut", range(0, 200, 7))
def test_no_damage_is_more_than_a_refusal(cut):
    data = zipped(Entry(), Entry(b"data/t.csv", b"a;b\n", method=0))
    for damaged in (data[:cut], data[cut:], data[:cut] + b"\xff\xff" + data[cut + 2 :], data[:cut] + data[cut + 1 :]):
        with suppress(BadPackage):
            packages.read_zip(io.BytesIO(damaged))


# Archives of other programs


def made(**options):
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", **options) as archive:
        archive.writestr("ade.toml", MANIFEST)
        archive.writestr("main.py", "x = 1\n" * 1000)
        archive.mkdir("data")
        archive.writestr("data/t.csv", "a;b\n")
    return whole.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_one_of_zipfile_is_read(method):
    assert packages.read_zip(io.BytesIO(made(compression=method))).files.keys() == {"main.py", "data/t.csv"}


def test_one_with_sizes_behind_the_bytes_is_read():
    class Stream(io.BytesIO):
        def seekable(self):
            return False

        def tell(self):
            raise OSError

    stream = Stream()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ade.toml", MANIFEST)
        archive.writestr("main.py", "x = 1\n")
    assert b"PK\7\x08" in stream.getvalue()

    assert packages.read_zip(io.BytesIO(stream.getvalue())).files == {"main.py": "x = 1\n"}


def test_one_without_modes_is_read():
    assert packages.read_zip(io.BytesIO(zipped(Entry(mode=0, dos=0x20)))).files == {"main.py": "x = 1\n"}


def test_byproducts_are_passed_over_whatever_is_in_them():
    beside = [b"__MACOSX/._main.py", b".DS_Store", b".git/config", b"__pycache__/main.cpython-311.pyc", b"a/b.pyc"]

    data = zipped(Entry(), *(Entry(name, b"\xff\0") for name in beside))

    assert packages.read_zip(io.BytesIO(data)).files == {"main.py": "x = 1\n"}


def test_what_is_small_may_be_repetitive():
    text = b"0;0;0;0\n" * 8000

    assert packages.read_zip(io.BytesIO(zipped(Entry(b"t.csv", text)))).files == {"t.csv": text.decode()}


def test_a_folder_packed_with_its_name_is_told_how_to_pack_it():
    data = zipped(Entry(b"invoices/ade.toml", MANIFEST), manifest=False)

    assert problems_of(data)[0] == (
        "ade.toml must be at the top of the package, not at 'invoices/ade.toml': pack the content of that folder."
    )
