"""Images for poolings, drawn: batched or not, of one to three dims, channels first or last in memory."""

import torch
from hypothesis import strategies as st


@st.composite
def images(draw, least=1, dtypes=(torch.float32, torch.float64)):
    n = draw(st.integers(1, 3))
    batch = draw(st.sampled_from([(), (1,), (2,)]))
    torch.manual_seed(draw(st.integers(0, 99)))
    sizes = [draw(st.integers(least, 6)) for _ in range(n)]
    x = torch.randn(*batch, 2, *sizes).to(draw(st.sampled_from(dtypes)))
    if n == 2 and batch and draw(st.booleans()):
        x = x.to(memory_format=torch.channels_last)
    return n, x


# The arguments of poolings that say where their windows lie.
windows = st.fixed_dictionaries(
    {
        "kernel_size": st.integers(1, 4),
        "stride": st.none() | st.integers(1, 3),
        "padding": st.integers(0, 2),
        "ceil_mode": st.booleans(),
    }
)
