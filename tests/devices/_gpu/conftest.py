import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def kernels():
    """(program, {target: LLVM IR}) of many programs."""
    script = Path(__file__).with_name("recorded_kernels.py")
    done = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)
