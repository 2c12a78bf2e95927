"""Words of an app's own for the statuses of items, and texts for people, in what its front end reads of tasks."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Annotated, Any, NamedTuple

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import asdict, replace

from lowkiq_lambda.dashboard.api.operations import ApiError
from lowkiq_lambda.dashboard.api.requests import Cursor
from lowkiq_lambda.dashboard.api.tasks import ItemsParams, TaskLimit, TaskParams
from lowkiq_lambda.operate.presentation.tasks import ItemPageResponse, ItemResponse, MessageResponse, TaskResponse
from lowkiq_lambda.tasks.views import STATUSES, Kind, Status

_KIND_OF: Mapping[Kind, Status] = {"working": "running"}
"""The status that an item got by a message of that kind, where that has another name."""


class WordedItemsParams(TaskParams, frozen=True, kw_only=True):
    """A page of the items of a task. `status`: a word of the app's own."""

    status: Annotated[str, Meta(max_length=100)] | UnsetType = UNSET
    after: Cursor | UnsetType = UNSET
    limit: TaskLimit = 100


class StatusWords(NamedTuple):
    """The words and texts of an app, by the statuses that have any."""

    words: Mapping[Status, str]
    texts: Mapping[Status, str]

    def progress(self, response: TaskResponse) -> TaskResponse:
        """The response in these words."""
        if not self.words:
            return response
        counts: Any = {self._word(status): count for status, count in response.counts.items()}
        errors: Any = [replace(error, status=self._word(error.status)) for error in response.errors]
        return replace(response, counts=counts, errors=errors)

    def items(self, read: Callable[[ItemsParams], ItemPageResponse], params: WordedItemsParams) -> ItemPageResponse:
        """The items that are asked for in these words. Raises ApiError for a word that is none."""
        fields = {**asdict(params), "status": self._status(params.status) if params.status else UNSET}
        page = read(ItemsParams(**fields))
        return replace(page, items=[self._item(item) for item in page.items]) if self.words or self.texts else page

    def _item(self, item: ItemResponse) -> ItemResponse:
        course = [self._message(message) for message in item.course]
        status: Any = self._word(item.status)
        # Behind those of its course there is one that says that it is paused.
        others = item.messages[sum(1 for one in item.course if one.text) :]
        return replace(
            item, status=status, course=course, messages=[*(one.text for one in course if one.text), *others]
        )

    def _message(self, message: MessageResponse) -> MessageResponse:
        status: Any = _KIND_OF.get(message.kind, message.kind)
        return message if message.text or status not in self.texts else replace(message, text=self.texts[status])

    def _word(self, status: Status) -> str:
        return self.words.get(status, status)

    def _status(self, word: str) -> Status:
        by_word = {self._word(status): status for status in STATUSES.values()}
        if word not in by_word:
            raise ApiError(HTTPStatus.BAD_REQUEST, "bad_parameter", f"status must be one of {', '.join(by_word)}.")
        return by_word[word]
