"""Finds tables and turns them into rows with typed columns. Works on plain words and lines, without any library.

`Tables` is what the digest uses. `find` finds the grids of a page: from its ruling lines where there are any (`ruled`),
otherwise from the gaps between its words (`unruled`). `kinds` reads the values of columns.
"""
