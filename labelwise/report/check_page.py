"""The page of a check: what contradicts the rest, beside the report, which links to it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from labelwise.common.decoding import DECODE_ERRORS
from labelwise.common.errors import InputError
from labelwise.common.files import staged
from labelwise.report.environment import make_environment

CHECK_PAGE = "check.html"
CHECK = Path("training/check/check.json")  # what a check found; see labelwise.check.run.Summary
MOST = 200  # rows of a table


def write_check_page(summary: Mapping[str, Any], out: Path) -> None:
    """Write what a check found as an HTML page.

    summary (Mapping): as check.json has it.
    RAISES (InputError): another process is writing the page.
    """
    template = make_environment().get_template("check.html.jinja")
    with staged(out) as path:
        path.write_text(template.render(**summary, most=MOST), encoding="utf8", newline="\n")


def read_checked_digest(root: Path) -> str:
    """Read of which texts in train the findings of a project are; empty if there are none.

    RAISES (InputError): their file isn't what it should be.
    """

    class Checked(msgspec.Struct):
        """The part of check.json that counts here."""

        digest: str

    path = root / CHECK
    try:
        return msgspec.json.decode(path.read_bytes(), type=Checked).digest if path.is_file() else ""
    except DECODE_ERRORS as error:
        raise InputError(f"{path}: {error}; run check again") from error
