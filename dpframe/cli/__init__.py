"""The command line: one file for each group of commands."""

from dpframe.cli.main import EXIT_CODES, main

__all__ = ["EXIT_CODES", "main"]
