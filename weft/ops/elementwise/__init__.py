"""Operations that compute each element of the result from elements of the operands."""
