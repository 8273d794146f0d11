import pytest

import weft.nn.functional as F


@pytest.mark.parametrize("name", ["grouped_mm", "scaled_mm"])
def test_products_that_are_not_there_say_so(name):
    with pytest.raises(NotImplementedError, match=f"torch.nn.functional.{name}"):
        getattr(F, name)(1, 2)
