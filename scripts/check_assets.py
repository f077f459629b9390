"""Check the fetched public corpora against their checksums."""

from pathlib import Path

from labelwise.console import msg, run, user_errors
from labelwise.sources.assets import verify_assets


def check_assets_cli() -> None:
    """Check the fetched public corpora against their checksums."""
    with user_errors("An asset isn't what it should be"):
        right = verify_assets(Path())
    for name in right:
        msg.good(name)
    msg.info(f"{len(right)} assets are here and match; `weasel assets --extra` fetches the others")


if __name__ == "__main__":
    run(check_assets_cli)
