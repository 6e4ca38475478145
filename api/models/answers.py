from django.db import models

from work import clock


class KeptAnswer(models.Model):
    """The response to a request that created something, saved in the same transaction. A client that lost the
    response and repeats the request with the same key gets it again.
    """

    # "token 3" or "user 5".
    caller = models.CharField(max_length=40)
    key = models.CharField(max_length=200)
    # Hash of method, path and body.
    fingerprint = models.CharField(max_length=64)
    answered = models.PositiveSmallIntegerField()
    body = models.TextField()
    created_at = models.DateTimeField(default=clock.now, db_index=True)

    class Meta:
        db_table = "api_kept_answers"
        constraints = [
            models.UniqueConstraint(
                name="kept_answer_one_per_caller_and_key",
                fields=["caller", "key"],
                violation_error_message="This key has already been used.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.key} of {self.caller}"
