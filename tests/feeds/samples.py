"""Feeds as found in the wild."""

from xml.sax.saxutils import escape

HEAD = '<?xml version="1.0" encoding="utf-8"?>'


def rss(*items, head=HEAD, about="<title>Aster News</title><link>https://aster.example/</link>"):
    return f'{head}<rss version="2.0"><channel>{about}{"".join(items)}</channel></rss>'.encode()


def item(title="Story", link="https://aster.example/story", *, about="", description="What has happened."):
    said = {"title": title, "link": link, "description": description}
    return f"<item>{''.join(f'<{name}>{escape(text)}</{name}>' for name, text in said.items() if text)}{about}</item>"


def stories(first, last, site="https://aster.example"):
    """Return valid items with these numbers."""
    return [item(f"Story {number}", f"{site}/{number}") for number in range(first, last + 1)]
