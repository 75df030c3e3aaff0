"""The command line as ``python -m fairperm``, for machines on which ``fairperm`` is not in PATH."""

from fairperm.cli import start

if __name__ == "__main__":
    start()
