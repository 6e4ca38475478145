from django import forms
from django.core.exceptions import ValidationError

from feeds import sources
from feeds.models import FeedSource
from feeds.sources import LONGEST_TITLE, NotAdded


class FeedForm(forms.Form):
    url = forms.CharField(
        label="URL",
        help_text="The address of the feed itself (RSS, Atom or JSON Feed), not of the web page that links to it.",
        # Don't use type "url": some browsers would complete the input, and show their own error message.
        widget=forms.TextInput(attrs={"class": "vLargeTextField", "inputmode": "url", "autofocus": True}),
    )
    title = forms.CharField(
        required=False,
        max_length=LONGEST_TITLE,
        help_text="Leave empty to use the title that the feed gives itself.",
        widget=forms.TextInput(attrs={"class": "vLargeTextField"}),
    )

    def made(self, actor: str) -> FeedSource | None:
        """Add the feed. If it can't be added, add the error to the form and return None."""
        if not self.is_valid():
            return None
        try:
            return sources.add(self.cleaned_data["url"], title=self.cleaned_data["title"], actor=actor)
        except NotAdded as refused:
            self.add_error("url", ValidationError(str(refused), code=refused.code))
        return None
