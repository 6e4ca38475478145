import time

import pytest

from builds import contents
from tests import effort


def only(problems):
    (problem,) = problems
    return problem


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pandas",
        "pandas>=2,<3\nnumpy==2.1.*\n",
        "uvicorn[standard] ~= 0.30",
        "# what we need\r\n\r\npandas  # für Tabellen – see https://example.com/x\r\n",
        "tzdata; sys_platform == 'win32' and platform_version != '10/2:1@x'",
        "ruamel.yaml",
        "zip.tools",
        "  indented\t",
        "not a requirement at all",
        "name-with-dashes>=1.0-2",
    ],
)
def test_requirements(text):
    assert list(contents.problems_of_requirements(text)) == []


OPTION = "options are not allowed, because the installation decides where packages come from"
ADDRESS = "not from an address"
FILE = "not from files or folders"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("--index-url https://evil.example/simple", OPTION),
        ("-i https://evil.example/simple", OPTION),
        ("--extra-index-url=https://evil.example", OPTION),
        ("-r other.txt", OPTION),
        ("-rother.txt", OPTION),
        ("-c limits.txt", OPTION),
        ("-e .", OPTION),
        ("-f wheels", OPTION),
        ("--find-links wheels", OPTION),
        ("  --pre", OPTION),
        ("pandas --config-settings=x=y", OPTION),
        ("pandas ; python_version > '3' --hash=sha256:00", OPTION),
        ("pandas @ https://evil.example/pandas.whl", ADDRESS),
        ("pandas@file:///tmp/x", ADDRESS),
        ("pandas @ x", ADDRESS),
        ("git+https://evil.example/x.git", ADDRESS),
        ("file:x", ADDRESS),
        ("C:x", ADDRESS),
        ("./wheels/x.whl", FILE),
        ("../x", FILE),
        ("/tmp/x", FILE),
        (".", FILE),
        (".[extra]", FILE),
        ("wheels/x", FILE),
        ("wheels\\x", FILE),
        ("x-1.0-py3-none-any.whl", FILE),
        ("x-1.0.ZIP [extra]", FILE),
        ("x-1.0.tar.gz # local", FILE),
        ("x.whl ; python_version > '3'", FILE),
        ("${HOME}", "not expanded"),
        ("pandas>=$VERSION", "not expanded"),
        ("pandas \\", "each requirement must be on one line"),
        ("# not the end of it \\\u2028-r x", "a control character"),
        ("# x\x0b-r x", "a control character"),
        ("pandas\0", "a control character"),
        ("pandas\ud800", "a control character"),
        ("\ufeff-r x", "only ASCII is allowed outside comments"),
        ("\u00a0-r x", "only ASCII is allowed outside comments"),
        ("рandas", "only ASCII is allowed outside comments"),
    ],
)
def test_requirements_that_lead_elsewhere(line, reason):
    problem = only(contents.problems_of_requirements(f"numpy\n{line}\nscipy"))

    assert problem.startswith("Line 2 of the requirements, ")
    assert ", is not like 'package>=1.2': " in problem
    assert problem.endswith(f"{reason}.")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_is_looked_at_whatever_ends_it(end):
    problems = list(contents.problems_of_requirements(end.join(["-r a", "# \\", "-r b"])))

    assert ["Line 1 " in problems[0], "Line 3 " in problems[1], len(problems)] == [True, True, 2]


def test_requirements_have_a_limit():
    assert only(contents.problems_of_requirements("é" * 32769)) == (
        "The requirements may have at most 65536 bytes, not 65538."
    )
    assert only(contents.problems_of_requirements("-\n" * 1000)) == (
        "The requirements may have at most 1000 lines, not 1001."
    )


@pytest.mark.parametrize("line", [".zip[" * 13000, ".tar" * 16000, " #" * 32000, "a " * 32000, ";" * 65000])
def test_no_line_takes_long_to_judge(line):
    before = time.process_time()

    list(contents.problems_of_requirements(line))

    assert effort.since(before) < 1


def test_what_is_found_is_shown_in_short():
    problem = only(contents.problems_of_requirements("-" + "x" * 5000))

    assert f", '-{'x' * 98}…', " in problem


@pytest.mark.parametrize("text", ["", "3.11", "3.14", "3.99"])
def test_versions_of_python(text):
    assert list(contents.problems_of_python_version(text)) == []


@pytest.mark.parametrize("text", ["3", "3.1", "3.10", "3.100", "2.11", "3.11.7", ">=3.11", " 3.11", "3.11\n", "३.११"])
def test_versions_of_python_that_cannot_be(text):
    assert f", not {text!r}." in only(contents.problems_of_python_version(text))


@pytest.mark.parametrize("text", ["invoices", "Rechnungen für März", "a/b", "x" * 100])
def test_names(text):
    assert list(contents.problems_of_name(text)) == []


@pytest.mark.parametrize("text", ["", " ", " a", "a ", "a\nb", "a\0", "a\u202eb", "a\x1b[0m", "x" * 101])
def test_names_that_cannot_be(text):
    assert "The name must have 1 to 100 printable characters" in only(contents.problems_of_name(text))


@pytest.mark.parametrize(
    ("paths", "problem"),
    [
        (["a", "a/b"], "'a' is both a file and a folder."),
        (["A/x", "a/y"], "'a' and 'A' differ only in capital letters, which some file systems do not distinguish."),
        (["a/b/x", "A"], "'a' and 'A' differ only in capital letters, which some file systems do not distinguish."),
        (["a.PYC"], "'a.PYC' is generated by Python and cannot be a file of the configuration."),
        (["a/__pycache__/b"], "'a/__pycache__/b' is generated by Python and cannot be a file of the configuration."),
    ],
)
def test_paths_that_cannot_lie_side_by_side(paths, problem):
    assert only(contents.problems_of_files(dict.fromkeys(paths, ""))) == problem


def test_names_that_differ_only_in_how_accents_are_written():
    *_, problem = contents.problems_of_paths(["caf\u00e9.py", "cafe\u0301.py"])

    assert problem.endswith("differ only in how accents are written: 'cafe\\u0301.py', 'caf\\xe9.py'.")


def test_many_long_paths_are_judged_quickly():
    before = time.process_time()

    assert only(contents.problems_of_files(dict.fromkeys((f"{n}/" * 50 for n in range(10_000)), "")))

    assert effort.since(before) < 1


@pytest.mark.parametrize("path", [".git/config", "a/.venv/x", ".DS_Store", "__pycache__/a.txt", "a.pyc", "a/B.PYC"])
def test_byproducts(path):
    assert contents.is_byproduct(path)


@pytest.mark.parametrize("path", ["main.py", "a.b/c", "../x", "./x", "a/..", "a/.", "pyc", "a.pyc/b", "my__pycache__"])
def test_what_is_no_byproduct(path):
    assert not contents.is_byproduct(path)
