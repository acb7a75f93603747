"""Trains nothing, and ends when the numbers of ranks that it had are those of the arguments."""

import sys

import hopmesh

wanted = [int(size) for size in sys.argv[2:]]
mesh = hopmesh.connect()
loader = mesh.loader("towns", fanout=[3], batch_size=64, epochs=10_000, kind="numpy")
sizes = mesh.restore() or []
print(f"rank {loader.rank} of {loader.size} goes on at epoch {loader.epoch}", flush=True)
for epoch in loader.epochs():
    for _ in loader:
        assert mesh.all_reduce(1.0) == loader.size
    if sizes[-1:] != [loader.size]:
        sizes.append(loader.size)
    mesh.checkpoint(sizes)
    if loader.rank == 0:
        with open(sys.argv[1], "w", encoding="ascii") as file:
            file.write(f"{epoch} {sizes}")
    if sizes == wanted:
        loader.stop()
