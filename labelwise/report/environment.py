"""What renders the templates of pages: their filters, and what they may call."""

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from tqdm import tqdm

from labelwise.common.wording import counted
from labelwise.report.charts import short_number
from labelwise.report.mistake_examples import mark_up


def make_environment() -> Environment:
    """Make what renders the templates: all values are escaped, and an unknown name is an error."""
    environment = Environment(
        loader=PackageLoader("labelwise.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "score": format_score,
        "short": short_number,
        "number": "{:,}".format,
        "share": format_share,
        "difference": format_difference,
        "counted": counted,
        "duration": tqdm.format_interval,
    }
    environment.globals |= {
        "mark_up": mark_up,
        "include_raw": _include_raw,
        "hash_of": hash_of,
    }
    return environment


def _include_raw(name: str) -> Markup:
    """Return a script or a style sheet of the package, which isn't escaped."""
    return Markup((Path(__file__).parent / "templates" / name).read_text(encoding="utf8"))  # noqa: S704  our own file


def hash_of(text: str) -> str:
    """Compute the hash by which a page's policy allows an inline script, and no other (CSP, level 2)."""
    return "sha256-" + base64.b64encode(hashlib.sha256(str(text).encode("utf8")).digest()).decode("ascii")


def format_score(value: float | None) -> str:
    """Write a score with three digits, or a dash where there is nothing to score."""
    return "–" if value is None else f"{value:.3f}"


def format_difference(value: float | None) -> str:
    """Write a difference of scores, with its sign."""
    return "–" if value is None else f"{value:+.3f}"


def format_share(share: float) -> str:
    """Write a share in percent; what is neither all nor nothing isn't rounded to either."""
    if 0 < share < 0.01:
        return "< 1%"
    return "> 99%" if 0.99 < share < 1 else f"{share:.0%}"
