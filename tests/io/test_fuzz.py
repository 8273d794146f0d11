"""Damaged files, some hundred of each format; `python -m tests.io.fuzz` reads as many as it is told."""


def test_mutants_of_good_files(run):
    done = run("-m", "tests.io.fuzz", "--mutants", 400, "--seed", 7, WEFT_CALLS="native")
    assert done.returncode == 0 and done.stdout.count("400 mutants") == 6, done.stderr
