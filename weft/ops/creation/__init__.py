"""Operations that make tensors from sizes, data or random numbers."""
