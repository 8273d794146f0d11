import pytest
import torch.distributed.rpc.functions

import weft.distributed.rpc.functions


@pytest.mark.parametrize("lib", [weft, torch])
def test_decorators_leave_the_question_to_the_call(lib):
    rpc = lib.distributed.rpc
    assert not rpc.api._is_current_rpc_agent_set()
    guarded = rpc.api._require_initialized(abs)
    with pytest.raises(RuntimeError, match="RPC has not been initialized"):
        guarded(-1)
    marked = rpc.functions.async_execution(abs)
    assert marked(-1) == 1 and marked._wrapped_async_rpc_function is abs
