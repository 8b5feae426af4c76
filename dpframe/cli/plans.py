"""``dpframe explain``, ``verify``, ``diff`` and ``approve``: what reviewers do with plans."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from dpframe.api.parameters import not_of
from dpframe.api.payer import nearest_approval
from dpframe.charge import resolve_composition
from dpframe.cli.job import is_job, read_job
from dpframe.cli.output import Announced, BadInput, plan_in, print_record, require_file, say
from dpframe.cli.pins import (
    JSON,
    PARAMETERS,
    PINS,
    PLACE,
    Commands,
    add_command,
    day,
    option,
    pin,
    read_parameters,
    switch,
)
from dpframe.core.budget import GDP, ZCDP
from dpframe.core.parameters import NotAValue
from dpframe.errors import DPFrameError, LedgerError, NoBudget, PlanMismatch, UnsupportedOperation
from dpframe.ledger.account import Account
from dpframe.ledger.amounts import decimals, exact_words, left_fields
from dpframe.ledger.approvals import (
    ANY,
    KEY_VARIABLE,
    Allowed,
    Approval,
    ApprovalKey,
    Bound,
    new_pair,
    read_range,
    valid,
)
from dpframe.ledger.budgets import open_budget, require_open
from dpframe.ledger.owners import Terms, approve, approver, revoke
from dpframe.ledger.place import DEFAULT_NAME, store_at
from dpframe.ledger.record import Draft, create_command, no_budget
from dpframe.ledger.scopes import per_text
from dpframe.ledger.store import Store
from dpframe.plan.document import QUESTIONS, RISKS, fields_beside, lacks_types, template_fingerprint
from dpframe.report import Plan, verify
from dpframe.report.story import windows_words

# What reviewers approve: a plan, or all that differ from it in values of parameters alone.


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A plan, and what its parameters may be."""

    plan: Plan  # With one value of each parameter
    # The values that they may have; those that are not here are as they are in the plan.
    allowed: Allowed

    @property
    def fingerprint(self) -> str:
        """What is approved: the fingerprint of the plan, or of its template for other values."""
        if not self.allowed:
            return self.plan.fingerprint
        words = {name: found.words for name, found in self.allowed}
        return template_fingerprint(self.plan, words)

    def ranges(self) -> dict[str, str]:
        """What parameters may be, by name, in words."""
        return {name: found.words for name, found in self.allowed}


def review(parsed: argparse.Namespace) -> Reviewed:
    """What the arguments of ``dpframe approve`` name: a job is planned, and charged nothing. Raises
    `BadInput` when the file is neither a job nor a plan. Raises `UnsupportedOperation` when the
    plan does not have the parameter, or its values are invalid.
    """
    path: Path = parsed.plan
    given = read_parameters(parsed)
    if is_job(path):
        with Announced(parsed, parsed.ledger, parsed.name, new="plan"):
            job = read_job(path, given, ranged=True)
            return Reviewed(job.plan(), job.allowed)
    plan = plan_in(path)
    if lacks_types(plan):
        refusal = UnsupportedOperation(
            "an earlier version of dpframe wrote the plan",
            why="its fingerprint does not cover the types of columns",
            remedy="plan the query again with this version, and approve that plan",
        )
        raise BadInput(refusal, path)
    return Reviewed(plan, _allowed(plan, given, path))


def _allowed(plan: Plan, given: dict[str, str], path: Path) -> Allowed:
    known = {parameter.name: parameter for parameter in plan.parameters}
    result = []
    for name, text in sorted(given.items()):
        if name not in known:
            refusal = UnsupportedOperation(
                f"the plan has no parameter {name!r}",
                remedy=f"use its parameters: {', '.join(known)}" if known else "leave --param out",
            )
            raise BadInput(refusal, path)
        kind = known[name].kind
        try:
            found = read_range(text, kind)
            same = found is not None or kind.text(kind.read(text)) == known[name].value
        except NotAValue:
            raise not_of(name, kind, text) from None
        if not same:
            refusal = UnsupportedOperation(
                f"the plan was made for {known[name].words()}",
                remedy=(f"leave --param {name} out", f"give a range: --param {name}={ANY}"),
            )
            raise BadInput(refusal, path)
        if found is not None:
            result.append((name, found))
    return tuple(result)


# The budget that a plan states, and the one that the ledger has.

_COMPOSITIONS = {ZCDP.measure: "zcdp", GDP.measure: "gdp"}
"""How a budget is composed that is counted in another measure than it was given in."""


def name_of(plan: Plan, given: str | None) -> str:
    """The budget that a plan is approved for. Raises `PlanMismatch` when the plan states another
    one than was given.
    """
    stated = None if plan.budget is None else plan.budget.name
    if given is not None and stated not in (None, given):
        raise PlanMismatch(
            f"the plan names the budget {stated!r}, and the command {given!r}",
            where=f"--name {shlex.quote(given)}",
            remedy=(
                "leave --name out",
                f"plan the query again in a session with name={given!r}",
            ),
        )
    return given or stated or DEFAULT_NAME


def require_stated(store: Store, name: str, plan: Plan, *, create: bool) -> Account:
    """The budget that a plan states, as the ledger has it; opened if it is new and `create` allows.
    Raises `PlanMismatch` when the ledger is another one, or has another amount. Raises `NoBudget`
    when it does not exist, and may not be opened. Raises `LedgerError` when it is new, and the plan
    states no amount. Raises `BudgetExceeded` when it was closed.
    """
    chain, stated = store.read(), plan.budget
    if stated is not None and stated.ledger not in (None, *chain.identities):
        raise _mismatch(f"the plan was made for another ledger than {store.where!r}", store)
    if name not in chain.accounts:
        if not create:
            raise no_budget(name, chain.accounts, store.where)
        if stated is None:
            raise LedgerError(
                f"the ledger {store.where!r} has no budget {name!r}, and the plan states no amount",
                remedy=(
                    f"create it: {create_command(shlex.quote(name))}",
                    f"plan the query in a session with ledger={store.where!r}",
                ),
            )
        same = stated.counted == stated.whole.measure
        composition = "sum" if same else _COMPOSITIONS.get(stated.counted, stated.counted)
        budget, within = resolve_composition(stated.whole, composition)
        why = per_text(stated.per)
        open_budget(store, Draft(name, "opened", amount=budget, within=within, why=why))
        chain = store.read()
    account = chain.account(name)
    require_open(account)
    there = Bound.of(account)
    if stated is not None and there != (seen := Bound(stated.whole, stated.counted)):
        raise _mismatch(
            f"the plan was made for a budget of {seen.words()}, and {name!r} in "
            f"{store.where!r} has {there.words()}",
            store,
        )
    return account


def _mismatch(what: str, store: Store) -> PlanMismatch:
    return PlanMismatch(
        what, remedy=f"plan the query again in a session with ledger={store.where!r}"
    )


FORMATS = ("text", "markdown", "html", "mermaid")
_ARGUMENTS = {"plan": "FILE", "by": "--by WHO", "ledger": "--ledger WHERE"}


def add_commands(commands: Commands) -> None:
    """Add the commands."""
    add_command(
        commands,
        _explain,
        "explain",
        "show a plan, or plan a job without running it",
        "Show the plan in a file, or the plan that a job would run, and its "
        "fingerprint. Nothing is charged or created, and no data is read. If the job's budget "
        "does not exist, the plan is the one for a new budget.",
        option("plan", "FILE", "a plan as JSON, or a job as .py or .toml", type=Path),
        option("--format", None, "default: text", choices=FORMATS, default="text"),
        switch("--details", "show the details behind the first page, too"),
        option(
            "--size",
            "N",
            "public guess of the number of individuals in each group: warn if the noise is too "
            "large for that number",
            type=int,
        ),
        option(
            "--typical",
            "COLUMN=VALUE",
            "public guess of a typical value of a column: warn if bounds or limits add too much "
            "noise for it",
            action="append",
            default=[],
        ),
        option("--output", "PLAN.json", "write the plan to this file", type=Path),
        *PINS,
        switch("--json", "print the plan as JSON"),
    )
    add_command(
        commands,
        _verify,
        "verify",
        "verify a plan by the kernel, without data or ledger",
        "Compute from a plan alone how much one individual can change each number, and "
        "what the noise then costs, and print what was verified. No data, ledger or network is "
        "used. Exit code 5 if a statement of the plan does not follow, 1 for a document of "
        "version 1, which the kernel cannot verify.",
        option("plan", "PLAN.json", "a plan as JSON; - reads standard input"),
        JSON,
    )
    add_command(
        commands,
        _diff,
        "diff",
        "describe the differences between two plans",
        "Describe the differences between two plans. A job is planned with its "
        "parameters, but not run. Exit code 0 if the plans are the same, 1 if they differ.",
        option("before", "A.json", "first plan: JSON, or a job", type=Path),
        option("after", "B.json", "second plan: JSON, or a job", type=Path),
        *PINS,
        JSON,
    )
    add_command(
        commands,
        _approve,
        "approve",
        "approve a plan, on record in a ledger",
        "Record in a ledger that a plan may run. Sessions with require_approval=True "
        "run only approved plans. A job is planned and not run. With --param NAME=LOW..HIGH, "
        "values with commas, or `any`, all plans are approved that differ only in that "
        "parameter's value. With DPFRAME_APPROVAL_KEY in the environment the approval is signed.",
        option("plan", "FILE", "a plan as JSON, or a job", type=Path, nargs="?"),
        PARAMETERS,
        option("--by", "WHO", "who approves it"),
        option("--ledger", "WHERE", PLACE),
        option(
            "--name",
            "BUDGET",
            "budget that the plan will be charged to (default: the one that the plan states, else "
            '"default")',
        ),
        switch(
            "--create",
            "create the budget that the plan states and its ledger if they do not exist",
        ),
        option("--runs", "N", "number of runs that are approved", type=int),
        option(
            "--until",
            "DATE",
            "last day of the approval, such as 2027-01-01",
            type=day,
        ),
        option("--revoke", "FINGERPRINT", "withdraw all approvals of this plan"),
        option("--reason", "WHY", "reason for --revoke"),
        switch("--new-key", "print a new key pair for signing and verifying"),
        JSON,
    )


def _explain(parsed: argparse.Namespace) -> int:
    if parsed.json and (parsed.size is not None or parsed.typical):
        name = "--typical" if parsed.size is None else "--size"
        parsed.parser.error(
            f"{name} is for people: --json prints the plan, which has no guesses in it"
        )
    typical = dict(text.rpartition("=")[::2] for text in parsed.typical)
    if "" in typical:
        parsed.parser.error("--typical: write COLUMN=VALUE")
    path: Path = parsed.plan
    plan = _read_plan(parsed, path)
    if parsed.output is not None:
        _write(plan, parsed.output)
    if parsed.json:
        # with risks, questions and amounts as decimals: these follow from the plan and are no part
        text = plan.to_json()
        doubts = {RISKS: list(plan.risks), QUESTIONS: list(plan.questions)}
        beside = fields_beside({"remaining": plan.remaining, "cost": plan.cost})
        whole = json.loads(text) | doubts | beside
        print(json.dumps(whole, indent=2, ensure_ascii=text.isascii()))
        return 0
    print(plan.explain(parsed.format, details=parsed.details, size=parsed.size, typical=typical))
    if parsed.format in ("text", "markdown"):
        print(f"\nfingerprint {plan.fingerprint}")
    return 0


def _read_plan(parsed: argparse.Namespace, path: Path) -> Plan:
    """The plan that a file holds, or that a job would run."""
    given = read_parameters(parsed)
    if is_job(path):
        with pin(parsed):
            return read_job(path, given).plan()
    if given:
        refusal = UnsupportedOperation(
            "a plan has its parameters already",
            remedy=("leave --param out", "give the job in place of the plan"),
        )
        raise BadInput(refusal, path)
    return plan_in(path)


def _write(plan: Plan, path: Path) -> None:
    if path.is_file() and not _holds_a_plan(path):
        refusal = UnsupportedOperation(
            "the file exists and is not a plan, so it is not replaced",
            remedy="write the plan to another file",
        )
        raise BadInput(refusal, path)
    try:
        path.write_text(plan.to_json() + "\n", encoding="utf-8")
    except OSError as error:
        refusal = UnsupportedOperation(
            f"the plan cannot be written: {error.strerror}",
            remedy="write a path in a folder that exists and that this user may write to",
        )
        raise BadInput(refusal, path) from None
    say(f"wrote the plan {plan.fingerprint} to {path}", to_errors=True)


def _holds_a_plan(path: Path) -> bool:
    """Whether a file is a plan, perhaps an edited one or one of another version."""
    try:
        fields = json.loads(path.read_bytes())
    except (OSError, RecursionError, ValueError):
        return False
    return isinstance(fields, dict) and fields.keys() >= {"schema_version", "fingerprint", "plan"}


def _verify(parsed: argparse.Namespace) -> int:
    path = Path(parsed.plan)
    try:
        found = verify(sys.stdin.buffer.read() if parsed.plan == "-" else require_file(path))
    except BadInput:
        raise
    except DPFrameError as error:
        raise BadInput(error, path) from None
    if parsed.json:
        record = {
            "verified": found.is_complete,
            "cost": found.cost.words(),
            "cost_decimal": decimals(found.cost, up=True),
            "fingerprint": found.fingerprint,
            "physical_digest": found.digest,
            "statements": list(found.statements),
        }
        print(json.dumps(record, indent=2))
    else:
        for line in str(found).splitlines():
            say(line)
    return 0 if found.is_complete else 1


def _diff(parsed: argparse.Namespace) -> int:
    paths = (parsed.before, parsed.after)
    if any(map(is_job, paths)):  # whose parameters are given
        before, after = (_read_plan(parsed, p) if is_job(p) else plan_in(p) for p in paths)
    else:
        before, after = (_read_plan(parsed, path) for path in paths)
    found = before.diff(after)
    if parsed.json:
        print(json.dumps({"same": not found, "differences": found.splitlines()}, indent=2))
    else:
        print(found or "no difference")
    return 1 if found else 0


def _approve(parsed: argparse.Namespace) -> int:
    if parsed.new_key:
        private, public = new_pair()
        if parsed.json:
            return print_record({"private": private, "public": public})
        print(f"for reviewers, who keep it secret:\n  {KEY_VARIABLE}={private}")
        print(f"for jobs, which can only verify with it:\n  {KEY_VARIABLE}={public}")
        return 0
    needed = ("by", "ledger") if parsed.revoke else ("plan", "by", "ledger")
    missing = [name for name in needed if getattr(parsed, name) is None]
    if missing:
        parsed.parser.error(f"missing: {', '.join(_ARGUMENTS[name] for name in missing)}")
    return _revoke(parsed) if parsed.revoke else _approve_plan(parsed)


def _revoke(parsed: argparse.Namespace) -> int:
    store = store_at(parsed.ledger, create=False)
    name = parsed.name or _budget_of_approval(store, parsed.revoke)
    found = revoke(store, name, parsed.revoke, parsed.by, parsed.reason)
    if parsed.json:
        print(json.dumps({"revoked": found, "by": parsed.by, "name": name}, indent=2))
    else:
        say(f"revoked {found}, for budget {name!r}, by {parsed.by}")
    return 0


def _budget_of_approval(store: Store, fingerprint: str) -> str:
    """The budget that a plan is approved for, which need not be named where it is one only. What
    was revoked does not count.
    """
    approvals = store.read().approvals
    names = [
        name
        for name, of_budget in approvals.items()
        if any(a.revoked is None and a.fingerprint.startswith(fingerprint) for a in of_budget)
    ]
    if len(names) > 1:
        raise UnsupportedOperation(
            f"the plan is approved for several budgets: {', '.join(map(repr, sorted(names)))}",
            where="dpframe approve --revoke",
            remedy="write --name NAME, once for each budget",
        )
    return names[0] if names else DEFAULT_NAME


def _approve_plan(parsed: argparse.Namespace) -> int:
    found, key = review(parsed), ApprovalKey.from_environment()
    plan, fingerprint = found.plan, found.fingerprint
    store, name = store_at(parsed.ledger, create=parsed.create), name_of(plan, parsed.name)
    terms = Terms(parsed.runs, parsed.until)
    approver(parsed.by, key)  # before a budget is created for nothing
    with Announced(parsed):
        try:
            account = require_stated(store, name, plan, create=parsed.create)
        except NoBudget as refusal:
            first = (refusal.remedy or "").partition("\n")[0]
            refusal.remedy = f"{first}\nopen it with the amount that the plan states: --create"
            raise
    known = nearest_approval(plan, tuple(valid(store.read().approvals.get(name, []), key)))
    if not parsed.json:
        before = None if known is None else Plan.from_json(known[0].document)
        for line in (*plan.explain(since=before).splitlines(), ""):
            say(line)
    document = plan.to_json(None)
    approve(store, name, fingerprint, document, parsed.by, key, terms, found.allowed)
    bound, left = Bound.of(account), account.remaining
    if parsed.json:
        where = {"by": parsed.by, "name": name, "ledger": store.where, "budget": bound.words()}
        made = {
            "approved": fingerprint,
            "plan": plan.fingerprint,
            "parameters": found.ranges(),
            **where,
            "cost": plan.cost.words(),
            "runs": terms.runs,
            "until": None if terms.until is None else terms.until.isoformat(),
            "signed": key is not None,
            **left_fields(left),
        }
        made |= {RISKS: list(plan.risks), QUESTIONS: list(plan.questions)}
        if words := list(windows_words(plan)):
            made["protects"] = words
        return print_record(made | parsed.announced)
    signed = "unsigned" if key is None else "signed"
    say(f"approved {fingerprint}, {signed}, for budget {name!r}, by {parsed.by}")
    for parameter, values in found.ranges().items():
        of = "any value" if values == ANY else values
        say(f"  for all runs in which {parameter} is {of}, and nothing else differs")
    say(f"  of {bound.words()}; {exact_words(left)} remains, in {store.where}")
    for line in f"  costs {plan.cost.words()} each time it runs; {_compare(known)}".split("\n"):
        say(line)
    for line in windows_words(plan):
        say(f"  {line}")
    if terms.runs is not None or terms.until is not None:
        often = "" if terms.runs is None else f" {terms.runs} times"
        end = "" if terms.until is None else f" until {terms.until}"
        say(f"  may run{often}{end}")
    return 0


def _compare(known: tuple[Approval, str] | None) -> str:
    if known is None:
        return "the first plan that is approved for it"
    approval, words = known
    if not words:
        return f"{approval.by} approved it before"
    lines = "".join(f"\n    {line}" for line in words.splitlines())
    return f"compared with {approval.fingerprint[:16]}, approved before:{lines}"
