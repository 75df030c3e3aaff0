"""The command behind ``make reproduce``: ``python -m studies [NAME ...]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import studies
from fairperm.errors import FairpermError
from studies.data import use_original_files


def main() -> None:
    """Run the studies that the command line names, and end with an error if one cannot be run."""
    parser = argparse.ArgumentParser(prog="python -m studies", description=studies.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(studies.NAMES))
    parser.add_argument("--full", action="store_true", help="the whole: about 45 minutes")
    parser.add_argument("--out", type=Path, default="fairperm-studies", metavar="FOLDER")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the page here, too")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--jobs", type=int, default=-1, metavar="N", help="threads; -1 is all")
    given = parser.parse_args()
    use_original_files()
    try:
        studies.run(
            given.names or "all",
            given.out,
            markdown=given.markdown,
            quick=not given.full,
            seed=given.seed,
            n_jobs=given.jobs,
        )
    except FairpermError as error:
        sys.exit(f"studies: error: {error}")


if __name__ == "__main__":
    main()
