"""Invariants of documents and their processing: see `work/invariants.py`."""

from django.db import connection

from documents import fulltext
from work.invariants import DEFECT, Dialect, Invariant

_LIVE_JOBS = """
        SELECT 'document', document_id FROM document_processing_jobs
        WHERE status IN ('PENDING', 'PROCESSING') GROUP BY document_id HAVING COUNT(*) > 1"""
_ACCOUNTS = """
        SELECT 'job', id FROM document_processing_jobs
        WHERE attempts > max_attempts
            OR (status = 'FAILED' AND error_log = '')
            OR (status = 'COMPLETED' AND completed_at IS NULL)
            OR (status <> 'COMPLETED' AND completed_at IS NOT NULL)"""
_COMPLETED = """
        SELECT DISTINCT 'job', j.id FROM document_processing_jobs j JOIN stages s ON s.job_id = j.id
        WHERE j.status = 'COMPLETED' AND s.status <> 'DONE'"""
_STATUSES = """
        SELECT 'document', d.id FROM documents d LEFT JOIN document_processing_jobs j ON j.document_id = d.id
            AND j.id = (SELECT MAX(l.id) FROM document_processing_jobs l WHERE l.document_id = d.id)
        WHERE (j.id IS NULL AND d.status = 'processing') OR d.status <>
            CASE j.status WHEN 'COMPLETED' THEN 'processed' WHEN 'FAILED' THEN 'failed'
                WHEN 'PENDING' THEN 'processing' WHEN 'PROCESSING' THEN 'processing' END"""
_CHOSEN = """
        SELECT DISTINCT 'document', document_id FROM document_fields
        GROUP BY document_id, name HAVING MAX(CASE WHEN chosen = {true} THEN 1 ELSE 0 END) = 0"""
_WORKSPACES = """
        SELECT DISTINCT 'document', d.id FROM document_chunks c JOIN documents d ON d.id = c.document_id
        WHERE c.workspace_id <> d.workspace_id"""

_SENDERS = """
        SELECT 'document', d.id FROM documents d JOIN senders s ON s.id = d.sender_id
        WHERE s.workspace_id <> d.workspace_id
        UNION SELECT 'document', d.id FROM lesson_evidence e JOIN documents d ON d.id = e.document_id
        JOIN sender_lessons l ON l.id = e.lesson_id JOIN senders s ON s.id = l.sender_id
        WHERE s.workspace_id <> d.workspace_id"""


def _purged(dialect: Dialect) -> str:
    beside = " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} b WHERE b.document_id = d.id)"
        for table in (
            *("document_chunks", "document_fields", "field_corrections", "document_problems"),
            *("document_tables", "cell_corrections"),
        )
    )
    # `file` is a reserved word of SQL Server.
    file = connection.ops.quote_name("file")
    return f"""
        SELECT 'document', d.id FROM documents d WHERE d.purged_at IS NOT NULL AND (
            d.status = 'processing' OR d.{file} <> '' OR d.text <> '' OR d.embedding IS NOT NULL OR {beside})"""


def _words_out_of_step(dialect: Dialect) -> str:
    """Find chunks that are missing in SQLite's table of words, and words in that table whose chunk is missing.

    PostgreSQL needs no such check, because it searches the table of chunks itself.
    """
    if dialect.vendor != "sqlite" or not fulltext.has_index():
        return "SELECT 'document', id FROM documents WHERE 1 = 0"
    sizes = f"{fulltext.TABLE}_docsize"
    return f"""
        SELECT DISTINCT 'document', document_id FROM document_chunks WHERE id NOT IN (SELECT id FROM {sizes})
        UNION ALL SELECT 'chunk', id FROM {sizes} WHERE id NOT IN (SELECT id FROM document_chunks)"""


INVARIANTS = (
    Invariant(
        "a_document_has_at_most_one_live_job",
        "A document has at most one processing job that is pending or under way.",
        lambda dialect: _LIVE_JOBS,
        "The constraint job_one_live_per_document is missing: compare the schema with the migrations.",
    ),
    Invariant(
        "a_processing_job_accounts_for_itself",
        "A job has at most its maximum of attempts; a failed job has an error log, a completed one a time.",
        lambda dialect: _ACCOUNTS,
        "The constraints of document_processing_jobs are missing: compare the schema with the migrations.",
    ),
    Invariant(
        "a_completed_job_has_done_all_its_stages",
        "A processing job is completed only when all of its stages are done.",
        lambda dialect: _COMPLETED,
        "The document may lack text or fields. Process it again, and report it with the events of the job.",
    ),
    Invariant(
        "a_document_stands_where_its_last_job_stands",
        "A document is processing while it has a live job; otherwise its status matches its last job.",
        lambda dialect: _STATUSES,
        "Without a job, the document would stay in this status for ever. Process it again, and report it.",
    ),
    Invariant(
        "a_purged_document_holds_nothing",
        "A purged document has only its record and its history.",
        _purged,
        "Something other than ADE wrote to the tables. Remove the contents of the row, or the rows that refer to it.",
    ),
    Invariant(
        "a_field_has_a_chosen_value",
        "Among the values that sources give for a field, one is chosen.",
        # SQL Server has no Boolean values.
        lambda dialect: _CHOSEN.format(true="1" if dialect.vendor == "microsoft" else "TRUE"),
        f"{DEFECT} Process the document again: until then, the field is not shown.",
    ),
    Invariant(
        "a_chunk_is_in_the_workspace_of_its_document",
        "A chunk has the same workspace as its document.",
        lambda dialect: _WORKSPACES,
        f"{DEFECT} Process the document again: until then, searches do not find it.",
    ),
    Invariant(
        "what_is_learned_stays_in_its_workspace",
        "A document has the same workspace as its sender, and as the lessons that it confirms or contradicts.",
        lambda dialect: _SENDERS,
        f"{DEFECT} Forget the sender: until then, documents of another workspace teach it.",
    ),
    Invariant(
        "words_of_every_chunk_can_be_looked_up",
        "SQLite's index of words contains all chunks and nothing else.",
        _words_out_of_step,
        "Something other than ADE wrote to the tables. Rebuild the index with `manage.py document index --rebuild`.",
    ),
)
