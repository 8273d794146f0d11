import torch

import weft
import weft._C


def test_programs_may_log_and_ask_whether_they_are_traced():
    for module in (weft, torch):
        assert module._C._log_api_usage_once("mylib.thing") is None
        assert module._C._get_tracing_state() is None
