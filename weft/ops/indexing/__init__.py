"""Operations in which data decide which elements are read or written."""
