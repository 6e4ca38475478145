"""The operations that people perform on documents: see `work/operations/previews.py`."""

from documents import lessons, problems, reprocessing
from work.operations.previews import Operation

REPROCESS = Operation("reprocess", "Process again", reprocessing.reprocess, reprocessing.preview, knows_bulk=True)
DISMISS = Operation("dismiss", "Dismiss", problems.dismiss, problems.preview_dismissal)
SENDER_OFF = Operation("off", "Switch off", lessons.switch_off, lessons.preview_off)
SENDER_ON = Operation("on", "Switch on", lessons.switch_on, lessons.preview_on)
SENDER_APPLY = Operation("apply", "Apply to past documents", lessons.apply, lessons.preview_apply)
SENDER_FORGET = Operation("forget", "Forget", lessons.forget, lessons.preview_forget)
LESSON_OFF = Operation("off", "Switch off", lessons.switch_off, lessons.preview_off)
LESSON_ON = Operation("on", "Switch on", lessons.switch_on, lessons.preview_on)
