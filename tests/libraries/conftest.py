"""The scripts are programs that run.py runs, and no tests."""

collect_ignore = ["scripts"]
