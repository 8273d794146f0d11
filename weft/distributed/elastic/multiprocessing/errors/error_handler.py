"""`torch.distributed.elastic.multiprocessing.errors.error_handler`: writing down why a process failed."""

from __future__ import annotations

import json
import os
import time
import traceback
from typing import Any

from .....core.warn import user_level

__all__ = ["ErrorHandler"]


class ErrorHandler:
    """Writes exceptions into the file that TORCHELASTIC_ERROR_FILE names, as JSON."""

    def initialize(self) -> None:
        """Called before the program begins; Python's fault handler then prints the stack of a crash."""
        import faulthandler

        try:
            faulthandler.enable(all_threads=True)
        except Exception as error:  # standard error may be no file
            import warnings

            warnings.warn(
                f"Unable to enable fault handler. {type(error).__name__}: {error}", stacklevel=user_level()
            )

    def _get_error_file_path(self) -> str | None:
        return os.environ.get("TORCHELASTIC_ERROR_FILE")

    def _write_error_file(self, file_path: str, error_msg: str) -> None:
        with open(file_path, "w") as file:
            file.write(error_msg)

    def record_exception(self, e: BaseException) -> None:
        """Write the exception and its traceback."""
        path = self._get_error_file_path()
        if path is None:
            return
        stack = "".join(traceback.format_exception(type(e), e, e.__traceback__))
        details = {"py_callstack": stack, "timestamp": str(int(time.time()))}
        data = {"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": details}}
        self._write_error_file(path, json.dumps(data))

    def override_error_code_in_rootcause_data(
        self, rootcause_error_file: str, rootcause_error: dict[str, Any], error_code: int = 0
    ) -> None:
        """Let a failure have another code."""
        if "message" in rootcause_error and isinstance(rootcause_error["message"], dict):
            rootcause_error["message"]["errorCode"] = error_code

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Copy the file of a failed child into that of this process."""
        with open(rootcause_error_file) as file:
            data = json.load(file)
        if error_code:
            self.override_error_code_in_rootcause_data(rootcause_error_file, data, error_code)
        path = self._get_error_file_path()
        if path is not None:
            self._write_error_file(path, json.dumps(data))
