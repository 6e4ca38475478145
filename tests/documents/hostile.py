"""File names that an attacker could choose."""

TRAVERSAL = [
    *(
        "../../etc/passwd",
        "..\\..\\windows\\system32\\config",
        "/etc/passwd",
        "C:\\boot.ini",
        "\\\\server\\share\\a.pdf",
    ),
    *("..", ".", "...", "....//....//a.pdf", "a/../../b.pdf", "a/", "a\\", "/", "\\", "//", "./", "~/.ssh/id_rsa"),
    *("..%2f..%2fa.pdf", "%2e%2e/a.pdf", "..%c0%afa.pdf", "file:///etc/passwd", "documents/2024/01/x", "a.pdf/."),
]
CONTROLS = [
    *(
        "a\0.pdf",
        "\0",
        "a.pdf\0.html",
        "a\r\nSet-Cookie: x=1\r\n\r\n<html>.pdf",
        "a\nb.pdf",
        "a\rb.pdf",
        "\x1b[31ma.pdf",
    ),
    *("a\x7f.pdf", "a\x85b.pdf", "a\u2028b.pdf", "a\u2029b.pdf", "a\x08\x08b.pdf", "\t\t", "a\vb\fc.pdf"),
]
UNICODE = [
    *(
        "invoice\u202efdp.exe",
        "\u202a\u202b\u202c\u202d\u202e",
        "\u2066a\u2069.pdf",
        "\u200ea\u200f.pdf",
        "\u061ca.pdf",
    ),
    *(
        "\ufeffa.pdf",
        "a\u200b.pdf",
        "\u200b",
        "\u00ad",
        "e\u0301.pdf",
        "é.pdf",
        "ä" * 300 + ".pdf",
        "😀" * 100 + ".pdf",
    ),
    *("日本語の請求書.pdf", "عقد.pdf", "\ud800.pdf", "a\udcff.pdf", "\U000e0041\U000e0042", "👨\u200d👩\u200d👧.pdf"),
    *("a" + "\u0301" * 5000, "ﷺ" * 300, "．．／a.pdf", "a\uffff.pdf", "\ufffe", "И" * 255),
]
INJECTIONS = [
    *("$(id).pdf", "`id`.pdf", ";rm -rf *.pdf", "| id", "&& id", "-rf", "--help", "a b.pdf", "a'b.pdf", 'a"b.pdf'),
    *("{{7*7}}.pdf", "{% include 'x' %}", "${7*7}", "%s%s%n", "{0.__class__}", "#{7*7}", "<%= 7*7 %>"),
    *("<script>alert(1)</script>.pdf", '"><img src=x onerror=alert(1)>.pdf', "javascript:alert(1)", "' OR 1=1 --"),
    *('a.pdf"; filename="b.exe', "a.pdf; filename*=utf-8''b.exe", "=cmd|' /C calc'!A0", "&lt;b&gt;", "a%00b.pdf"),
]
LENGTHS = [
    "a" * 100_000,
    "a" * 100_000 + ".pdf",
    "/" * 100_000,
    "." * 100_000,
    " " * 100_000,
    "a." * 50_000,
    "a" * 255,
    "a" * 256,
]
OTHERS = ["", " ", "  .pdf", ".htaccess", "CON", "NUL.pdf", "a.pdf ", "a.pdf.", "desktop.ini", "a:b.pdf", "a?b*c.pdf"]
NAMES = TRAVERSAL + CONTROLS + UNICODE + INJECTIONS + LENGTHS + OTHERS
