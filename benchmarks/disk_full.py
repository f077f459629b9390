"""A merge to a disk that is too small: a clear error, and the old corpus is still there.

    sudo python -m benchmarks.disk_full

Mounts file systems in memory of 1, 2, 4, ... MB, which needs root, and merges to each until one is large enough.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

OPTIONS = ["--workers", "2", "--docs-per-partition", "20"]


def merge(declared: Path, out: Path) -> tuple[int, str]:
    """Merge; return the exit status and what was printed."""
    command = [sys.executable, "-m", "scripts.merge", str(declared), str(out), *OPTIONS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def contents(folder: Path) -> dict[str, bytes]:
    """Read a corpus's files, except for the cache."""
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if not name.startswith(".")}


def main() -> None:
    """Merge to each disk, and print what happens."""
    print("| disk, MB | exit status | message | the old corpus |\n|---|---|---|---|")
    with TemporaryDirectory() as folder:
        small, large = Path(folder, "small"), Path(folder, "large")
        for path, docs in ((small, "20"), (large, "400")):
            make = [sys.executable, "-m", "scripts.make_demo", str(path), "--format", "prodigy", "--docs", docs]
            subprocess.run(make, check=True, capture_output=True)
        megabytes, status = 1, 1
        while status:
            disk = Path(folder, "disk")
            disk.mkdir(exist_ok=True)
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(disk)], check=True)
            try:
                merge(small / "datasets.yml", disk / "corpus")
                before = contents(disk / "corpus")
                status, printed = merge(large / "datasets.yml", disk / "corpus")
                kept = "is there" if before == contents(disk / "corpus") else "is replaced"
                message = next((text.strip() for text in printed.splitlines() if "No space left" in text), "")
                print(f"| {megabytes} | {status} | {message.replace(str(disk), 'DISK')} | {kept} |")
                if status and (not message or kept == "is replaced"):
                    raise SystemExit(printed)
                megabytes *= 2
            finally:
                subprocess.run(["umount", str(disk)], check=True)


if __name__ == "__main__":
    main()
