"""Loops over the outer dims of kernels, as LLVM IR: they call a `row` for each position of the innermost dim. See `loops.py`."""

from __future__ import annotations

from .structured import LOOP, Body, function


def nest_ir(
    loop: str,
    operands: int,
    declarations: set[str],
    row: str | None = None,
    linkage: str = "",
    inline: bool = False,
) -> str:
    """`loop`, which walks the outer dims like an odometer. It calls `row`, or else the function whose address stands before the
    operands.
    """

    def write(b: Body) -> None:
        called = f"@{row}" if row else b.load("ptr", b.at("%operands", -8))
        params, dims, sizes = b.at("%operands", 8 * operands), b.load("i64", "%meta"), b.at("%meta", 8)
        last, count = b.integer("sub", dims, 1), b.integer("sub", "%end", "%begin")
        # Strides of operand k start at meta[1 + D + k * D].
        strides = [b.at(b.place("%meta", (b.integer("mul", dims, k + 1), 8)), 8) for k in range(operands)]
        inner = [b.load("i64", b.place(each, (last, 8))) for each in strides]
        bases = zip(b.operands(operands), strides, strict=True)
        places = [b.variable("ptr", b.place(base, (b.load("i64", each), "%begin"))) for base, each in bases]

        def call(n: str) -> None:
            given = [
                f"ptr {b.get(place, 'ptr')}, i64 {step}, " for place, step in zip(places, inner, strict=True)
            ]
            b.do(f"call void {called}({''.join(given)}ptr {params}, i64 {n})")

        def move(steps: list[str]) -> None:
            for place, step in zip(places, steps, strict=True):
                b.set(place, "ptr", b.at(b.get(place, "ptr"), step))

        flat = b.let(f"icmp eq i64 {dims}, 1")
        with b.when(flat):
            call(count)
        with b.unless(b.let(f"or i1 {flat}, {b.let(f'icmp sle i64 {count}, 0')}")):
            counters, n = b.zeros(64 * 8), b.load("i64", b.place(sizes, (last, 8)))
            dim = b.variable("i64", "0")
            with b.repeat() as go_on_if:
                call(n)
                b.set(dim, "i64", b.integer("sub", last, 1))
                with b.repeat() as carry_if:
                    d = b.get(dim, "i64")
                    steps = [b.load("i64", b.place(each, (d, 8))) for each in strides]
                    move(steps)
                    counter, top = b.place(counters, (d, 8)), b.let(f"icmp eq i64 {d}, 0")
                    counted = b.integer("add", b.load("i64", counter), 1)
                    b.do(f"store i64 {counted}, ptr {counter}")
                    size = b.let(f"select i1 {top}, i64 {count}, i64 {b.load('i64', b.place(sizes, (d, 8)))}")
                    carry_if(b.let(f"icmp sge i64 {counted}, {size}"))
                    go_on_if(b.let(f"xor i1 {top}, true"))  # else leave both loops
                    b.do(f"store i64 0, ptr {counter}")
                    move([b.integer("sub", 0, b.integer("mul", step, size)) for step in steps])
                    b.set(dim, "i64", b.integer("sub", d, 1))

    return function(loop, LOOP, declarations, write, linkage, inline=inline)
