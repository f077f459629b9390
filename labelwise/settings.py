"""The settings of a merge: all that the corpus depends on besides the data."""

import msgspec

from labelwise.errors import InputError
from labelwise.merge import Policies
from labelwise.tokenizer import TokenizerRules


class Settings(msgspec.Struct, frozen=True):
    """All that the result depends on besides the data.

    dev_ratio, test_ratio (float): share of the texts, by hash, of the data sets whose split is `auto`.
    split_salt (str): another salt gives another split.
    split_by (str): a key of the tasks' `meta`: texts that have the same value there get into the same split.
    docs_per_partition (int): the least size of a partition is 1, the size is an average.
    """

    lang: str = "en"
    tokenizer: TokenizerRules = TokenizerRules()
    policies: Policies = Policies()
    dev_ratio: float = 0.1
    test_ratio: float = 0.1
    split_salt: str = "labelwise"
    split_by: str = ""
    docs_per_partition: int = 200

    def __post_init__(self) -> None:
        """Check the numbers.

        RAISES (InputError): one is out of its range.
        """
        if not (self.dev_ratio >= 0 and self.test_ratio >= 0 and self.dev_ratio + self.test_ratio < 1):
            raise InputError(
                f"dev_ratio {self.dev_ratio} and test_ratio {self.test_ratio}: give shares that leave train some"
            )
        if self.docs_per_partition < 1:
            raise InputError(f"docs_per_partition {self.docs_per_partition}: give at least 1")
