"""Operations whose result consists of pieces of the inputs, and operations that fill or copy memory."""
