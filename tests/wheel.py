"""Builds the package and tries it where nothing else is: ``make package``, ``make test-versions``.

``python -m tests.wheel`` builds a wheel and a source archive into `dist/`, looks at what they hold,
has their metadata checked by twine, installs the wheel into an empty environment and runs it there,
in an empty folder. ``python -m tests.wheel --versions`` does the last on every Python that
`pyproject.toml` says is supported; those that are not on this machine are skipped, and named.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSIONS = tuple(
    found[1]
    for line in PROJECT["classifiers"]
    if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line))
)
IN_WHEEL = (
    *("dpframe/__init__.py", "dpframe/py.typed", "dpframe/examples.py", "dpframe/cli/main.py"),
    *("dpframe/data/adult.parquet", "dpframe/data/README.md"),
    f"dpframe-{PROJECT['version']}.dist-info/licenses/LICENSE",
)
IN_SOURCE = (
    *("SECURITY.md", "CHANGELOG.md", "Makefile", "hatch_build.py"),
    *("docs/index.md", "examples/hours.toml"),
)
SMOKE = """
import importlib.metadata, pathlib, sys
import dpframe as dp
home = pathlib.Path(dp.__file__).parent
assert home.is_relative_to(sys.prefix), f"{home} is not what was installed"
assert dp.__version__ == importlib.metadata.version("dpframe") == VERSION
assert (home / "py.typed").exists()
people = dp.Session(epsilon=1000).protect(dp.examples.adult(), unit=dp.Rows())
by_sex = people.group_by("sex", keys=["Female", "Male"])
query = by_sex.agg(dp.count().alias("n"), dp.mean("age", (17, 90)), m=dp.median("age", (17, 90)))
found = query.collect(epsilon=900)["n"]
assert all(abs(n - m) < 5 for n, m in zip(found, (10771, 21790)))
optional = {"altair", "cryptography", "duckdb", "hypothesis", "narwhals", "psycopg"}
assert not optional & set(sys.modules)
"""


def build(folder: Path) -> tuple[Path, Path]:
    """A wheel and a source archive, made from this source tree."""
    _run(sys.executable, "-m", "build", "--quiet", "--outdir", str(folder), str(ROOT))
    stem = f"dpframe-{PROJECT['version']}"
    return folder / f"{stem}-py3-none-any.whl", folder / f"{stem}.tar.gz"


def look(wheel: Path, source: Path) -> None:
    """Whether both hold what they should, and the wheel nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        described = archive.read(f"dpframe-{PROJECT['version']}.dist-info/METADATA").decode()
    missing = [name for name in IN_WHEEL if name not in names]
    foreign = [name for name in names if not re.match(r"dpframe(-[^/]+\.dist-info)?/", name)]
    left = [name for name in names if re.search(r"\.db|__pycache__|/tests?/", name)]
    _require(not missing and not foreign and not left, f"{wheel.name}: {missing + foreign + left}")
    _require("\n# dpframe\n" in described, "the wheel has no long description")
    dead = re.findall(r"\]\((?!https?://|mailto:)[^)]*\)", described)
    _require(not dead, f"the long description links to {', '.join(dead)}")
    with tarfile.open(source) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    missing = [name for name in IN_SOURCE if name not in held]
    left = [name for name in held if re.search(r"^[^/]+\.db\b|__pycache__|\.venv", name)]
    _require(not missing and not left, f"{source.name}: {missing + left}")


def interpreter(version: str) -> Path | None:
    """A Python of a version: on the path, of pyenv, or of uv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", Path.home() / ".local/share/uv/python"))
    on_path = [Path(folder) / f"python{version}" for folder in os.get_exec_path()]
    installed = [
        *pyenv.glob(f"{version}.*/bin/python{version}"),
        *uv.glob(f"cpython-{version}.*/bin/python{version}"),
    ]
    for path in (*on_path, *installed):
        if path.exists() and _works(path, version):
            return path
    return None


def _works(path: Path, version: str) -> bool:
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([path, "-c", asked], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == version


def try_out(wheel: Path, python: Path) -> str:
    """Install a wheel into a new environment and use it in an empty folder; what was installed."""
    with tempfile.TemporaryDirectory() as directory:
        environment, folder = Path(directory) / "environment", Path(directory) / "folder"
        folder.mkdir()
        _run(str(python), "-m", "venv", str(environment))
        inside = environment / "bin" / "python"
        _run(str(inside), "-m", "pip", "install", "--quiet", str(wheel))
        smoke = SMOKE.replace("VERSION", repr(PROJECT["version"]))
        _run(
            str(inside), "-I", "-W", "error::DeprecationWarning:dpframe", "-c", smoke, folder=folder
        )
        shown = _run(str(environment / "bin" / "dpframe"), "demo", folder=folder)
        _require(shown.count("remaining: epsilon") == 6, "dpframe demo shows too little")
        _require(not list(folder.iterdir()), "something was left in the folder")
        told = "import platform, polars; print(platform.python_version(), polars.__version__)"
        return ", Polars ".join(_run(str(inside), "-c", told, folder=folder).split())


def _run(*command: str, folder: Path = ROOT) -> str:
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    clean = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        command, cwd=folder, env=clean, capture_output=True, text=True, check=False
    )
    _require(done.returncode == 0, f"{' '.join(command[:4])}: {done.stdout}{done.stderr}")
    return done.stdout


def _require(holds: bool, said: str) -> None:
    if not holds:
        sys.exit(said)


def main() -> None:
    """Build, look, check, try."""
    parser = argparse.ArgumentParser(description="build the package and try it")
    parser.add_argument("--versions", action="store_true", help="on every Python that is supported")
    versions = parser.parse_args().versions
    wheel, source = build(ROOT / "dist")
    look(wheel, source)
    print(f"{wheel.name} and {source.name} hold what they should")
    print(_run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(source)).strip())
    if not versions:
        print("works on Python", try_out(wheel, Path(sys.executable)))
        return
    for version in VERSIONS:
        python = interpreter(version)
        if python is None:
            print(f"skipped Python {version}, which is not on this machine")
        else:
            print("works on Python", try_out(wheel, python), flush=True)


if __name__ == "__main__":
    main()
