"""Operations whose result shares the memory of the input."""
