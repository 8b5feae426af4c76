"""An Airflow DAG that publishes each day once, for Airflow 2.4 and later and Airflow 3.

Copy it into the folder of DAGs, and nightly.toml to where `JOB` says. Exit codes of dpframe decide
what happens after a failure. Budget, approval and input (3, 4, 5, 9) need a person, and a retry is
of no use. Failures of the engine or the ledger (6), and a run of the same day that is under way
elsewhere (7), are tried again. A retry of a day that was published returns its result and charges
nothing.
"""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta

try:  # Airflow 3
    from airflow.providers.standard.operators.python import PythonOperator
    from airflow.sdk import DAG
except ImportError:
    from airflow import DAG
    from airflow.operators.python import PythonOperator

from airflow.exceptions import AirflowException, AirflowFailException
from airflow.timetables.interval import CronDataIntervalTimetable

JOB = "/opt/dpframe/nightly.toml"
RESULTS = "/var/lib/dpframe/results"
LEDGER, BUDGET = "/var/lib/dpframe/budget.db", "visits-2027"
FOR_PEOPLE = {
    1: "a failure of the command itself",
    2: "the command is not known",
    3: "the budget is used up: nothing was charged",
    4: "the plan is not approved: have a reviewer look at it",
    5: "the job or a parameter makes no sense",
    9: "the ledger or the budget does not exist: create it, or correct the job",
}


def dpframe(*arguments: str) -> None:
    """Run a command; its log goes to the task's, line by line."""
    with subprocess.Popen(
        ["dpframe", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            print(line.rstrip())
    code = process.returncode
    if code in FOR_PEOPLE:
        raise AirflowFailException(f"exit code {code}: {FOR_PEOPLE[code]}")
    if code:
        raise AirflowException(f"exit code {code}: it is tried again")


def publish(ds: str) -> None:
    """Publish the day `ds`, such as 2027-01-31; the run is called after it."""
    output = f"{RESULTS}/visits-{ds}.parquet"
    dpframe("run", JOB, "--param", f"day={ds}", "--run-id", ds, "--output", output, "--log", "json")


def check(at_least: str) -> None:
    """Fail when less of the budget is left."""
    dpframe("ledger", "check", "--ledger", LEDGER, "--name", BUDGET, "--at-least", at_least)


with DAG(
    dag_id="visits_nightly",
    description="Visits by clinic, with differential privacy",
    # With data intervals a run at 04:30 is about the day before, in Airflow 3 too.
    schedule=CronDataIntervalTimetable("30 4 * * *", timezone="UTC"),
    start_date=datetime(2027, 1, 1, tzinfo=UTC),
    end_date=datetime(2028, 1, 1, tzinfo=UTC),
    catchup=True,  # days that were missed are published too
    max_active_runs=1,
    default_args={"retries": 4, "retry_delay": timedelta(minutes=15)},
    tags=["dpframe"],
) as dag:
    published = PythonOperator(
        task_id="publish", python_callable=publish, op_kwargs={"ds": "{{ ds }}"}
    )
    checked = PythonOperator(
        task_id="check_budget", python_callable=check, op_kwargs={"at_least": "0.001"}
    )
    published >> checked
