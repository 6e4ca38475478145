"""Holds what all children share: reading the order and reporting the outcome."""

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from ade_engine.channel import own_channel
from ade_services.trouble import Trouble

Order = dict[str, Any]


def main(work: Callable[[Order], dict[str, Any]]) -> NoReturn:
    channel = own_channel()
    with sys.stdin.buffer as file:
        order: Order = json.load(file)
    # Settings for proxies and certificates. They come with the order because a proxy's address may contain a password.
    os.environ.update(order.pop("environment", {}))
    try:
        channel.send("answered", **work(order))
    except Trouble as trouble:
        channel.send("failed", **trouble.to_json())
    except MemoryError:
        message = "The answer of the service needs more memory than allowed."
        channel.send("failed", **Trouble("too_large", message).to_json())
    except Exception as error:
        traceback.print_exc()
        message = f"Calling the service failed: {type(error).__name__}: {error}"
        channel.send("failed", **Trouble("internal", message).to_json())
    else:
        sys.exit(0)
    sys.exit(1)
