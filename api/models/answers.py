from django.db import models

from work import clock


class KeptAnswer(models.Model):
    """What a creating request was answered, in the transaction in which it created: whoever has lost the answer and
    asks again with the same key gets it again.
    """

    # Who asked: "token 3", "user 5".
    caller = models.CharField(max_length=40)
    key = models.CharField(max_length=200)
    # Of method, path and body.
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
                violation_error_message="This key has been used before.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.key} of {self.caller}"
