"""Runs the database queries of open streams in a few shared threads, instead of one thread per stream."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection

T = TypeVar("T")

# Each thread holds a connection while it queries.
POOL = ThreadPoolExecutor(4, thread_name_prefix="streams")


async def ask(question: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(POOL, _ask, question)


def _ask(question: Callable[[], T]) -> T:
    try:
        return question()
    finally:
        connection.close()
