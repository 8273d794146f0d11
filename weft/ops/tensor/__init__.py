"""The tensor object's own members: Python's protocol, storage, questions about metadata."""
