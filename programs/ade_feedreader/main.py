"""The program of the child process that reads feeds."""

import json
import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from ade_engine.channel import VARIABLE, Channel, own_channel
from ade_feedreader import FEED, ITEMS, SOURCE, items, json_feed, prolog, syndication, web_page
from ade_feedreader.decoding import decode
from ade_feedreader.trouble import Trouble
from ade_keeper import fork_server

LONGEST_MESSAGE = 1000
_AROUND = " \t\r\n\ufeff"


def main() -> NoReturn:
    """Read the feed of the working directory; with `serve DESCRIPTOR`, fork a process for each feed instead."""
    match sys.argv[1:]:
        case ["serve", descriptor]:
            fork_server.serve(int(descriptor), _warm_up, _become, VARIABLE)
    sys.exit(_work(own_channel()))


def _warm_up() -> None:
    """Parse two tiny feeds, so that lazy imports and regular expressions are ready before the first fork."""
    empty = '<rss version="2.0"><channel><item><title>a</title><pubDate>Mon, 06 Sep 2021 00:01:00 GMT</pubDate></item>'
    for text in (f"{empty}</channel></rss>", f"{empty}&nbsp;"):
        list(syndication.read(text, "").items)


def _become(_: None) -> NoReturn:
    code = _work(own_channel())
    sys.stdout.flush()
    os._exit(code)


def _work(channel: Channel) -> int:
    try:
        source = json.loads(Path(SOURCE).read_bytes())
        # Many feeds start with an empty line, which XML does not allow.
        text = decode(Path(FEED).read_bytes(), source["content_type"]).strip(_AROUND)
        if not text:
            raise Trouble("not_a_feed", "This feed is empty: it contains only spaces.")
        if text.startswith(("{", "[")):
            feed = json_feed.read(text, source["url"])
        elif prolog.looks_like_html(text):
            raise web_page.no_feed(text, source["url"])
        else:
            feed = syndication.read(text, source["url"])
        channel.send("read", **items.metadata(feed, items.write(feed.items, Path(ITEMS))))
    except Trouble as trouble:
        return _fail(channel, trouble.code, str(trouble))
    except MemoryError:
        return _fail(channel, "too_large", "Reading this feed takes more memory than is allowed.")
    except RecursionError:
        return _fail(channel, "malformed", "The elements of this feed are nested too deeply.")
    except Exception as error:
        traceback.print_exc()
        return _fail(channel, "internal", f"The feed reader failed: {type(error).__name__}: {error}")
    return 0


def _fail(channel: Channel, code: str, message: str) -> int:
    channel.send("failed", code=code, message=message[:LONGEST_MESSAGE])
    return 1
