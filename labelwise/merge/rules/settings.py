"""Everything that a corpus depends on besides the data."""

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from labelwise.base.errors import InputError
from labelwise.base.settings import check_choices, check_types, read_section
from labelwise.corpus.tokenizer import LearningTokenizer, TokenizerRules, make_nlp, read_rules
from labelwise.merge.rules.policies import Policies

NearDuplicates = Literal["report", "group", "off"]
NAMES = {"no": "nb"}  # codes of languages that spaCy calls otherwise
MAX_WORDS = 1_000_000  # per tokenizer: about 20 seconds; making a new one takes 0.2


class Settings(Policies, frozen=True):
    """The section `merge` of project.yml (docs/settings.md), and `tokenizer` of configs/tokenizer.yml."""

    lang: str = "en"
    dev_ratio: float = 0.1
    test_ratio: float = 0.1
    split_salt: str = "labelwise"
    split_by: str = ""
    by: list[str] = []
    near_duplicates: NearDuplicates = "report"
    near_similarity: Annotated[float, msgspec.Meta(ge=0.5, le=1)] = 0.8
    docs_per_partition: Annotated[int, msgspec.Meta(ge=1)] = 200
    tokenizer: TokenizerRules = TokenizerRules()

    def __post_init__(self) -> None:
        check_choices(self)
        check_types(self)
        if not (self.dev_ratio >= 0 and self.test_ratio >= 0 and self.dev_ratio + self.test_ratio < 1):
            raise InputError(
                f"dev_ratio {self.dev_ratio} and test_ratio {self.test_ratio}: give shares that leave some for train"
            )
        if self.near_duplicates == "group" and self.split_by:
            raise InputError("near_duplicates: group and split_by both decide which texts stay in one split; use one")

    @property
    def kept_meta(self) -> list[str]:
        """Return the keys of the tasks' `meta` that the merge uses."""
        return [key for key in (self.split_by, *self.by) if key]


def read_settings(project: Path | None) -> Settings:
    """Read the settings from project.yml, or use the defaults. Refuse a wrong value or key."""
    section = read_section(project, "merge", Settings, other=("tokenizer",))
    lang = NAMES.get(section.lang, section.lang)
    return msgspec.structs.replace(section, lang=lang, tokenizer=read_rules(project))


def load_tokenizer(settings: Settings) -> LearningTokenizer:
    """Make the tokenizer once per process, and again after many words.

    spaCy's memory zones leak a few bytes a word (`pipeline.bounded_vocab`); a new tokenizer frees them.
    """
    key = settings.lang, msgspec.json.encode(settings.tokenizer)
    if _load(*key).words > MAX_WORDS:
        _load.cache_clear()
    return _load(*key)


@lru_cache(maxsize=1)
def _load(lang: str, rules: bytes) -> LearningTokenizer:
    nlp = make_nlp(lang, msgspec.json.decode(rules, type=TokenizerRules))
    # A merge needs no lexical attributes of words, such as shapes, which take time and memory.
    vocab: Any = nlp.vocab
    vocab.lex_attr_getters.clear()
    return LearningTokenizer(nlp)
