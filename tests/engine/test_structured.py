from weft.engine.structured import Body


def test_large_memory_is_not_cleared_by_a_store():
    # LLVM takes a store of an array apart, byte by byte, and then needs ten seconds for 12 KB.
    body = Body(set())
    body.zeros(12288)
    text = "\n".join(body.lines)
    assert "@llvm.memset" in text and "store" not in text
