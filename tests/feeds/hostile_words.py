"""Hostile strings that strangers may write into a title or an address."""

LONG_URL = "https://news.example.com/" + "a" * 100_000
URLS = [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " javascript:alert(1)",
    "java\nscript:alert(1)",
    "\x01javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:msgbox(1)",
    "file:///etc/passwd",
    "//evil.example.com/a",
    "/admin/logout/",
    "https:evil.example.com",
    "https://",
    "https:///a",
    "https://?a",
    "https://user@evil.example.com/",
    "https://news.example.com\\@evil.example.com/",
    'https://news.example.com/" onclick="alert(1)',
    "https://news.example.com/<script>alert(1)</script>",
    "https://news.example.com/a b",
    "https://news.example.com/\u202ea",
    "https://news.example.com/\r\nSet-Cookie: a=b",
    "https://[broken/",
]
TITLES = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></svg><svg onload=alert(1)>",
    "]]><evil/>&#0;&amp;",
    "{{ 7*7 }}{% debug %} %s {0.__class__}",
    "abc\u202egnp.exe",
    "\x1b[2Jnothing",
    "$(id) `id`",
]
