"""Images: the results of a query. Temporary and read-only; the messages stay where they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from postroom.model.html_table import html_table
from postroom.model.key import key_text
from postroom.model.tables import Table
from postroom.model.types import FieldValue, plain, text
from postroom.stations.forms.catalog import Edition
from postroom.stations.forms.filling import values
from postroom.stations.forms.form import Form
from postroom.store.tables.images import KeptImage

if TYPE_CHECKING:
    import pandas
    import pyarrow


@dataclass(frozen=True, slots=True)
class Image:
    """A message as it was, and its station or mailbox."""

    key: str
    place: str
    form: Form  # by which the message was made
    body: str

    @property
    def type(self) -> str:
        """The name of its type."""
        return self.form.name

    @property
    def fields(self) -> Mapping[str, FieldValue]:
        """The values of its fields; a missing field is None."""
        return values(self.form, self.body)

    def shown(self) -> str:
        """The filled form as text."""
        return self.form.shown(self.fields)

    def _repr_html_(self) -> str:
        several = ((name, value if isinstance(value, tuple) else (value,)) for name, value in self.fields.items())
        rows = [(name, text(item)) for name, values in several for item in values]
        return html_table(f"{self.type} {self.key} at {self.place}", ["field", "value"], rows, len(rows))

    def as_dict(self) -> dict[str, Any]:
        fields = {name: plain(value) for name, value in self.fields.items()}
        return {"key": self.key, "type": self.type, "place": self.place, "fields": fields}


class Answer(Sequence[Image]):
    """The images that a query found, by key; decoded when they are read."""

    seq: int | None  # the query's number; a local one has none
    is_part: bool  # of what that query found: it was looked through again
    damaged: tuple[str, ...]  # keys of damaged messages

    def __init__(
        self,
        seq: int | None,
        kept: Sequence[KeptImage],
        editions: Mapping[tuple[str, int], Edition],
        damaged: Sequence[str] = (),
        *,
        is_part: bool = False,
    ) -> None:
        self.seq = seq
        self.is_part = is_part
        self.kept = kept
        self.damaged = tuple(damaged)
        self._editions = editions

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._image(image) for image in self.kept[index]]
        return self._image(self.kept[index])

    def __iter__(self) -> Iterator[Image]:
        return map(self._image, self.kept)

    def _image(self, kept: KeptImage) -> Image:
        return Image(key_text(kept.key), kept.place, self._editions[kept.type, kept.form].form, kept.body)

    def table(self) -> Table:
        """A row for each message: its key, its place and its fields. Also for DuckDB, which reads Arrow."""
        images = [(image.key, image.place, image.fields) for image in self]
        names = dict.fromkeys(name for _, _, fields in images for name in fields)
        about = {"key": [image[0] for image in images], "place": [image[1] for image in images]}
        fields = {
            f"field.{name}" if name in about else name: [image[2].get(name) for image in images] for name in names
        }
        return Table("messages", {**about, **fields})

    def arrow(self) -> pyarrow.Table:
        """As an Arrow table."""
        return self.table().arrow()

    def pandas(self) -> pandas.DataFrame:
        """As a pandas frame."""
        return self.table().pandas()

    def polars(self) -> Any:
        """As a Polars frame, if it is installed."""
        return self.table().polars()

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def as_messages(self) -> dict[str, Any]:
        """The same without the number of a query, for a listing."""
        shape: dict[str, Any] = {"messages": [image.as_dict() for image in self]}
        return {**shape, "damaged": list(self.damaged)} if self.damaged else shape

    def as_dict(self) -> dict[str, Any]:
        shape: dict[str, Any] = {"seq": self.seq, "images": [image.as_dict() for image in self]}
        return {**shape, "damaged": list(self.damaged)} if self.damaged else shape
