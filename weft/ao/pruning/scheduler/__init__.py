"""What chooses how many weights are set to 0, by epochs."""

from ....compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("base_scheduler", "cubic_scheduler", "lambda_scheduler"))
