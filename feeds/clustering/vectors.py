"""Embeds articles with the current model."""

import time
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime

import structlog
from django.db.models import QuerySet

from documents import embedding
from documents.children import EMBEDDER, program_directory
from documents.embedding import EmbeddingFailed, Vectors
from feeds.clustering.window import by_turns
from feeds.models import RawArticle
from schedules.jobs import JobContext
from work import failpoints
from work.claims import Interrupted
from work.processes.supervise import CannotStart

# Articles that are embedded and saved at once. If the worker dies, no more than these have to be embedded again.
BATCH = 500
# Characters of the summary: the beginning of an article says what it is about.
SUMMARY = 500
# Share of the job's time for embedding, so that one feed with thousands of articles does not keep the others from
# being clustered.
SHARE = 0.5
# If a service refuses even this text, it refuses everything, because the key or the model is wrong.
HARMLESS = "A short text about the weather of today"

log = structlog.get_logger(__name__)


def has_meaning(text: str) -> bool:
    """Return whether the current model can distinguish texts in the script of this one. The local model reads only the
    Latin script well.
    """
    if not embedding.is_local():
        return True
    letters = [letter for letter in text if letter.isalpha()]
    return 2 * sum("LATIN" in unicodedata.name(letter, "") for letter in letters) >= len(letters)


def not_embedded(model: str, border: datetime) -> QuerySet[RawArticle]:
    """Return articles since `border` that were not processed with this model, the latest of each feed first."""
    return by_turns(RawArticle.objects.filter(happened_at__gte=border).exclude(embedding_model=model))


def embed_new(turn: JobContext, border: datetime) -> str:
    """Embed all articles that have no vector. Return why it ended early, or "". Raises Interrupted and JobFailed."""
    waiting = not_embedded(embedding.model(), border)
    seconds = SHARE * turn.job.max_runtime.total_seconds()
    until = time.monotonic() + seconds
    while articles := list(waiting.only("title", "summary")[:BATCH]):
        turn.go_on()
        if time.monotonic() >= until:
            return f"The time for embedding, {seconds:.0f} s, is used up."
        readable = [article for article in articles if has_meaning(text_of(article))]
        _set_aside(set(articles) - set(readable))
        try:
            _embed(turn, readable, until)
        except (EmbeddingFailed, CannotStart) as error:
            return str(error)
        failpoints.hit("clustering.embedded")
    return ""


def text_of(article: RawArticle) -> str:
    return f"{article.title}. {article.summary[:SUMMARY]}" if article.summary else article.title


def _embed(turn: JobContext, articles: Sequence[RawArticle], until: float) -> None:
    """Embed the articles. If the service refuses a batch, it is halved until the refused texts are found; those are
    set aside.
    """
    pieces, is_service_working = [articles], False
    while pieces and time.monotonic() < until:
        turn.go_on()
        piece = pieces.pop()
        try:
            vectors = _vectors_of(turn, [text_of(article) for article in piece])
        except EmbeddingFailed as error:
            if not error.permanent:
                raise
            if not is_service_working:
                _vectors_of(turn, [HARMLESS])
                is_service_working = True
            if len(piece) > 1:
                pieces += [piece[len(piece) // 2 :], piece[: len(piece) // 2]]
                continue
            log.warning("clustering.text_refused", article=piece[0].pk, error=str(error))
            _set_aside(piece)
            continue
        for article, vector in zip(piece, vectors.each, strict=True):
            article.embedding, article.embedding_model = vector, vectors.model
        RawArticle.objects.bulk_update(piece, ["embedding", "embedding_model"], batch_size=BATCH // 5)


def _vectors_of(turn: JobContext, texts: Sequence[str]) -> Vectors:
    try:
        with program_directory(EMBEDDER, turn.why_stop, is_warm=embedding.is_local()) as place:
            return embedding.embed(
                texts, place.directory, stop=turn.why_stop, on_start=turn.claim.take_charge_of, run=place.run
            )
    except Interrupted as interrupted:
        turn.ended(interrupted.reason)
        raise


def _set_aside(articles: Iterable[RawArticle]) -> None:
    """Record that this model has no vector for these articles. They are not sent again, and each gets its own
    cluster.
    """
    RawArticle.objects.filter(pk__in=[article.pk for article in articles]).update(
        embedding=None, embedding_model=embedding.model()
    )
