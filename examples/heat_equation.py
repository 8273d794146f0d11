"""Heat in a square plate, one edge kept hot: explicit steps of the heat equation, written with slices."""

import torch

size = 32
plate = torch.zeros(size, size, dtype=torch.float64)
plate[0] = 100.0  # degrees; the other three edges stay at 0
diffusion = 0.24  # below the limit 0.25 of stability

steps, change = 0, float("inf")
while change > 1e-3:
    middle = plate[1:-1, 1:-1]
    around = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
    updated = middle + diffusion * (around - 4 * middle)
    change = (updated - middle).abs().max().item()
    plate[1:-1, 1:-1] = updated
    steps += 1

print(f"steady after {steps} steps")
print(f"middle {plate[size // 2, size // 2]:.4f}, mean {plate.mean():.4f}")
print("down the middle column:", plate[:: size // 8, size // 2])
shades = " .:-=+*#%@"
for row in (plate[::2] / 100 * (len(shades) - 1)).round().long().tolist():
    print("".join(shades[level] for level in row))
