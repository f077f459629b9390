"""What renders the template of a page: its filters, and the functions that it may call."""

import base64
import hashlib
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from labelwise.common.wording import counted


def make_environment() -> Environment:
    """Make the environment: all values are escaped, and an unknown name is an error."""
    environment = Environment(
        loader=PackageLoader("labelwise.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "score": format_score,
        "number": "{:,}".format,
        "share": format_share,
        "counted": counted,
        "json": json_in_page,
    }
    environment.globals |= {"include_raw": _include_raw, "hash_of": hash_of}
    return environment


def json_in_page(content: Any) -> Markup:
    """Write JSON without the character that could end the element of a page that it stands in."""
    encoded = msgspec.json.encode(content).replace(b"<", b"\\u003c").decode()
    return Markup(encoded)  # noqa: S704  has no < in it


def _include_raw(name: str) -> Markup:
    """Return a script or a style sheet of the package, which isn't escaped."""
    return Markup((Path(__file__).parent / "templates" / name).read_text(encoding="utf8"))  # noqa: S704  our own file


def hash_of(text: str) -> str:
    """Compute the hash by which a page's policy allows an inline script, and no other (CSP, level 2)."""
    return "sha256-" + base64.b64encode(hashlib.sha256(str(text).encode("utf8")).digest()).decode("ascii")


def format_score(value: float | None) -> str:
    """Write a score with two digits, or a dash where there is nothing to score."""
    return "–" if value is None else f"{value:.2f}"


def format_share(share: float) -> str:
    """Write a share in percent; what is neither all nor nothing isn't rounded to either."""
    if 0 < share < 0.01:
        return "< 1%"
    return "> 99%" if 0.99 < share < 1 else f"{share:.0%}"
