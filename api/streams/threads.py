"""Where open streams ask the database: in a few threads that all share, not in one for each stream."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection

T = TypeVar("T")

# Each of them has a connection while it asks.
POOL = ThreadPoolExecutor(4, thread_name_prefix="streams")


async def ask(question: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(POOL, _ask, question)


def _ask(question: Callable[[], T]) -> T:
    try:
        return question()
    finally:
        connection.close()
