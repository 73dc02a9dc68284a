#!/usr/bin/env python3
"""Times rows of `halo-bench --device cpu` in turns with Python libraries for the same work.

    python3 -m venv peers
    peers/bin/pip install numba rebound        # and devito, if wanted
    peers/bin/python baselines/cpu/peers.py target/release/halo-bench

Each round runs halo-bench for one family and size, then each installed peer. The output is the
median time over the rounds, in microseconds, and the ratio of Halo's time to the time of the best
peer. Peers are called once before they are timed, and each result is compared with NumPy's.
RAYON_NUM_THREADS sets the number of threads of all of them.
"""

import argparse
import csv
import os
import statistics
import subprocess
import tempfile
import time

THREADS = os.environ.get("RAYON_NUM_THREADS") or str(len(os.sched_getaffinity(0)))
for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, THREADS)
os.environ.setdefault("DEVITO_LANGUAGE", "openmp")
os.environ.setdefault("DEVITO_LOGGING", "ERROR")

import numpy as np

try:
    import numba
except ImportError:
    numba = None
try:
    import rebound
except ImportError:
    rebound = None
try:
    import devito
except ImportError:
    devito = None

FIRST = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280])


def compiled(function):
    return numba.njit(parallel=True, fastmath=True)(function) if numba else None


def timed(call):
    """The time of one call: the mean over as many calls as take 20 ms."""
    start = time.perf_counter()
    call()
    count = max(1, int(0.02 / (time.perf_counter() - start + 1e-9)))
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def sums(size, dtype):
    x = np.random.default_rng(1).random(size, dtype)
    yield "NumPy", lambda: x.sum(), lambda: x.sum()
    if numba:

        @compiled
        def total(x):
            sum = x.dtype.type(0)
            for i in numba.prange(x.size):
                sum += x[i]
            return sum

        yield "numba", lambda: total(x), lambda: total(x)


def least(size, dtype):
    x = np.random.default_rng(1).random(size, dtype)
    yield "NumPy", lambda: x.min(), lambda: x.min()


def iterations(count):
    def peers(size, dtype):
        plates = [np.zeros((size, size), dtype) for _ in range(2)]

        def start():
            for plate in plates:
                plate[:] = 0
                plate[:, 0] = 1

        def in_numpy():
            a, b = plates
            for _ in range(count):
                b[1:-1, 1:-1] = (
                    (a[1:-1, 2:] + a[1:-1, :-2]) + (a[2:, 1:-1] + a[:-2, 1:-1])
                ) * dtype(0.25)
                a, b = b, a
            return a

        def checked(call):
            def run():
                start()
                return call().copy()

            return run

        yield "NumPy", in_numpy, checked(in_numpy)
        if numba:

            @compiled
            def iterate(a, b):
                for j in numba.prange(1, a.shape[0] - 1):
                    for i in range(1, a.shape[1] - 1):
                        sum = (a[j, i + 1] + a[j, i - 1]) + (a[j + 1, i] + a[j - 1, i])
                        b[j, i] = sum * a.dtype.type(0.25)

            def in_numba():
                a, b = plates
                for _ in range(count):
                    iterate(a, b)
                    a, b = b, a
                return a

            yield "numba", in_numba, checked(in_numba)

    return peers


def gradient(size, dtype):
    """Only inner points, where all schemes are the same."""
    f = np.random.default_rng(1).random((size,) * 3, dtype)
    out = np.zeros((3,) + f.shape, dtype)
    inner = slice(4, size - 4)

    def in_numpy():
        for axis in range(3):
            total = 0
            for m, weight in enumerate(FIRST, 1):
                part = [[inner] * 3 for _ in range(2)]
                part[0][axis] = slice(4 + m, size - 4 + m)
                part[1][axis] = slice(4 - m, size - 4 - m)
                total = total + dtype(weight) * (f[tuple(part[0])] - f[tuple(part[1])])
            out[axis, inner, inner, inner] = total
        return out[:, inner, inner, inner]

    yield "NumPy", in_numpy, lambda: in_numpy().copy()
    if numba:
        weights = FIRST.astype(dtype)

        @compiled
        def all_axes(f, out, weights):
            n = f.shape[0]
            w0, w1, w2, w3 = weights
            for k in numba.prange(4, n - 4):
                for j in range(4, n - 4):
                    for i in range(4, n - 4):
                        out[2, k, j, i] = (
                            w0 * (f[k, j, i + 1] - f[k, j, i - 1])
                            + w1 * (f[k, j, i + 2] - f[k, j, i - 2])
                            + w2 * (f[k, j, i + 3] - f[k, j, i - 3])
                            + w3 * (f[k, j, i + 4] - f[k, j, i - 4])
                        )
                        out[1, k, j, i] = (
                            w0 * (f[k, j + 1, i] - f[k, j - 1, i])
                            + w1 * (f[k, j + 2, i] - f[k, j - 2, i])
                            + w2 * (f[k, j + 3, i] - f[k, j - 3, i])
                            + w3 * (f[k, j + 4, i] - f[k, j - 4, i])
                        )
                        out[0, k, j, i] = (
                            w0 * (f[k + 1, j, i] - f[k - 1, j, i])
                            + w1 * (f[k + 2, j, i] - f[k - 2, j, i])
                            + w2 * (f[k + 3, j, i] - f[k - 3, j, i])
                            + w3 * (f[k + 4, j, i] - f[k - 4, j, i])
                        )

        def in_numba():
            all_axes(f, out, weights)
            return out[:, inner, inner, inner]

        yield "numba", in_numba, lambda: in_numba().copy()
    if devito:
        grid = devito.Grid(shape=f.shape, extent=(size - 1,) * 3, dtype=dtype)
        field = devito.Function(name="f", grid=grid, space_order=8)
        field.data[:] = f
        results = [devito.Function(name=f"g{axis}", grid=grid) for axis in range(3)]
        derivatives = [getattr(field, f"d{d.name}c") if hasattr(field, f"d{d.name}c")
                       else getattr(field, f"d{d.name}") for d in grid.dimensions]
        apply = devito.Operator([devito.Eq(g, d) for g, d in zip(results, derivatives)])

        def in_devito():
            apply.apply()
            return np.array([g.data[inner, inner, inner] for g in results])

        yield "Devito", apply.apply, in_devito


def attraction(size, dtype):
    random = np.random.default_rng(1)
    place, mass = random.random((size, 3), dtype), random.random(size, dtype)
    out = np.zeros((size, 3), dtype)
    softening = dtype(1e-4)

    def in_numpy():
        for i in range(size):
            r = place - place[i]
            s = mass / ((r * r).sum(1) + softening) ** dtype(1.5)
            out[i] = (r * s[:, None]).sum(0)
        return out

    yield "NumPy", in_numpy, lambda: in_numpy().copy()
    if numba:

        @compiled
        def pull(x, y, z, mass, softening, out):
            for i in numba.prange(x.size):
                ax, ay, az = x.dtype.type(0), x.dtype.type(0), x.dtype.type(0)
                for j in range(x.size):
                    dx, dy, dz = x[j] - x[i], y[j] - y[i], z[j] - z[i]
                    inverse = x.dtype.type(1) / np.sqrt(dx * dx + dy * dy + dz * dz + softening)
                    s = mass[j] * inverse * inverse * inverse
                    ax += s * dx
                    ay += s * dy
                    az += s * dz
                out[i, 0], out[i, 1], out[i, 2] = ax, ay, az

        x, y, z = (np.ascontiguousarray(place[:, axis]) for axis in range(3))

        def in_numba():
            pull(x, y, z, mass, softening, out)
            return out

        yield "numba", in_numba, lambda: in_numba().copy()
    if rebound and dtype is np.float64:
        simulation = rebound.Simulation()
        simulation.softening = float(softening) ** 0.5
        simulation.gravity = "basic"
        simulation.integrator = "leapfrog"
        simulation.dt = 1e-9
        for at, m in zip(place, mass):
            simulation.add(m=m, x=at[0], y=at[1], z=at[2])
        # A step is one evaluation of the accelerations, and hardly anything else.
        yield "REBOUND", lambda: simulation.steps(1), None


F32, F64 = np.float32, np.float64
# Family, size for halo-bench, its row, the peers in Python, their size and type.
WORK = [
    ("reduction", "1048576", "reduction, CPU port, sum f32", sums, 1048576, F32),
    ("reduction", "1048576", "reduction, CPU port, sum f64", sums, 1048576, F64),
    ("reduction", "1048576", "reduction, CPU port, min f32", least, 1048576, F32),
    ("heat2d", "256", "heat2d, CPU port, 100 iterations, f32", iterations(100), 256, F32),
    ("heat2d", "256", "heat2d, CPU port, 100 iterations, f64", iterations(100), 256, F64),
    ("heat2d", "1024", "heat2d, CPU port, f32", iterations(1), 1024, F32),
    ("derivative3d", "64", "derivative3d Gradient, CPU port, f32", gradient, 64, F32),
    ("derivative3d", "64", "derivative3d Gradient, CPU port, f64", gradient, 64, F64),
    ("nbody", "1024", "nbody, CPU port, structure of arrays, f32", attraction, 1024, F32),
    ("nbody", "1024", "nbody, CPU port, structure of arrays, f64", attraction, 1024, F64),
]


def rows_of(program, family, size, folder):
    """The medians of halo-bench's rows, in seconds."""
    path = os.path.join(folder, "rows.csv")
    command = [program, "--device", "cpu", "--family", family, "--size", size, "--csv", path]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(path, newline="") as file:
        lines = csv.DictReader(line for line in file if not line.startswith("#"))
        return {line["kernel"]: float(line["time_median_s"]) for line in lines
                if line["by"] == "rust" and line["time_median_s"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", help="halo-bench, built with --features bench")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    have = {"NumPy": np, "numba": numba, "Devito": devito, "REBOUND": rebound}
    print(f"{THREADS} threads;", ", ".join(
        f"{name} {module.__version__}" if module else f"{name} is not installed"
        for name, module in have.items()))
    with tempfile.TemporaryDirectory() as folder:
        for family, size, row, peers, n, dtype in WORK:
            peers = list(peers(n, dtype))
            expected = peers[0][2]()
            scale = np.abs(expected).max()
            for name, call, result in peers:
                call()
                if result:
                    error = np.abs(result() - expected).max() / scale
                    assert error < 2e3 * np.finfo(dtype).eps, f"{name}, {row}: {error}"
            times = {name: [] for name, _, _ in peers}
            ours = []
            for _ in range(arguments.rounds):
                ours.append(rows_of(arguments.program, family, size, folder)[row])
                for name, call, _ in peers:
                    times[name].append(timed(call))
            own = statistics.median(ours)
            medians = {name: statistics.median(all) for name, all in times.items()}
            others = ", ".join(f"{name} {1e6 * t:.4g}" for name, t in medians.items())
            print(f"{row}, {size}: Halo {1e6 * own:.4g} µs; {others};"
                  f" ratio to the best {own / min(medians.values()):.3f}", flush=True)


if __name__ == "__main__":
    main()
