"""Programs whose sizes change from call to call: `python -m bench --only "new sizes*"` (see bench/README.md)."""
