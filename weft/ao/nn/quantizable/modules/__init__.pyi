# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .rnn import LSTM as LSTM
from .rnn import LSTMCell as LSTMCell
from .activation import MultiheadAttention as MultiheadAttention
from . import activation as activation
from . import rnn as rnn
