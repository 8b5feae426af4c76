"""``dpframe ledger``: budgets that are kept."""

from __future__ import annotations

import argparse
import json
from typing import Any

from dpframe.charge import rho_within
from dpframe.ledger import report
from dpframe.ledger.place import store_at


def add_commands(commands: Any) -> None:
    """Add ``dpframe ledger``."""
    ledger = commands.add_parser("ledger", help="read, verify and raise budgets that are kept")
    acts = ledger.add_subparsers(title="commands", required=True, metavar="COMMAND")
    helps = {
        "show": "budgets, grants, approvals and charges",
        "verify": "whether anything was changed since it was written",
        "export": "every record, as JSON lines",
        "grant": "raise a budget, on record",
    }
    made = {name: acts.add_parser(name, help=words) for name, words in helps.items()}
    for name, parser in made.items():
        parser.add_argument(
            "--ledger",
            required=True,
            metavar="WHERE",
            help="path, or sqlite:/// or postgresql:// URL",
        )
        parser.add_argument(
            "--name", required=name == "grant", metavar="NAME", help="of the budget"
        )
        parser.set_defaults(run=_run_ledger, act=name)
    made["show"].add_argument("--json", action="store_true", help="print JSON")
    for amount in ("epsilon", "delta", "rho"):
        made["grant"].add_argument(f"--{amount}", metavar="MORE", help="what is added")
    made["grant"].add_argument("--by", required=True, metavar="WHO")
    made["grant"].add_argument("--reason", required=True, metavar="WHY")


def _run_ledger(parsed: argparse.Namespace) -> int:
    store = store_at(parsed.ledger, create=False)
    if parsed.act == "show" and parsed.json:
        print(json.dumps(report.record(store, parsed.name), indent=2))
        return 0
    if parsed.act == "grant":
        given = {k: getattr(parsed, k) for k in ("epsilon", "delta", "rho")}
        amounts = {k: v for k, v in given.items() if v is not None}
        lines = report.grant(store, parsed.name, amounts, parsed.by, parsed.reason, rho_within)
    else:
        read = {"show": report.show, "verify": report.verify, "export": report.export}
        lines = read[parsed.act](store, parsed.name)
    for line in lines:
        print(line)
    return 0
