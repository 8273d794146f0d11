"""Conway's game of life on a torus: a glider and a pulsar, all cells at once."""

import torch

board = torch.zeros(17, 32, dtype=torch.int64)
board[2:5, 20:23] = torch.tensor([[0, 1, 0], [0, 0, 1], [1, 1, 1]])  # a glider
for line in (2, 7, 9, 14):  # a pulsar
    for start in (4, 10):
        board[line, start : start + 3] = 1
        board[start : start + 3, line] = 1


def step(board: torch.Tensor) -> torch.Tensor:
    shifts = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1) if (down, right) != (0, 0)]
    neighbours = torch.stack([torch.roll(board, shift, dims=(0, 1)) for shift in shifts]).sum(dim=0)
    return ((neighbours == 3) | ((board == 1) & (neighbours == 2))).long()


def show(board: torch.Tensor) -> None:
    print("\n".join("".join(".#"[cell] for cell in row) for row in board.tolist()))


for generation in range(13):
    if generation % 6 == 0:
        print(f"generation {generation}: {board.sum().item()} cells")
        show(board)
    board = step(board)
