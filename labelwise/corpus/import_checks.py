"""What a merge's import checks found, as it is stored with the corpus: data, not words."""

from typing import Any

import msgspec


class ImportCheck(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A reason to think that data was misread, or isn't good for training; `merge.checks` puts it into words.

    kind (str): name of an entry of `merge.checks`.
    dataset (str): name of the dataset; empty if the check is about the corpus.
    n (int): number of rows, spans or texts concerned.
    values (dict): the other values of the sentence and of the remedy.
    places (list[str]): up to three examples, such as "person.jsonl:34".
    stops (bool): whether later stages refuse the corpus.
    sample (list[str]): the places with their words; not stored.
    where (str): the file, or section, that declares the dataset, relative to the working folder; not stored.
    """

    kind: str
    dataset: str = ""
    n: int = 0
    values: dict[str, Any] = {}
    places: list[str] = []
    stops: bool = False
    sample: list[str] = []
    where: str = ""

    def stored(self) -> "ImportCheck":
        """Return the part that depends on data and settings alone, without quotes and paths."""
        return msgspec.structs.replace(self, sample=[], where="")
