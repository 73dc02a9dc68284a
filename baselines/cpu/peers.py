#!/usr/bin/env python3
"""Times rows of `halo-bench --device cpu` in turns with Python libraries for the same work.

    python3 -m venv peers
    peers/bin/pip install numba devito rebound          # any of them may be missing
    cargo build --release -p halo-bench
    peers/bin/python baselines/cpu/peers.py target/release/halo-bench

Each round runs halo-bench for one family and size, then each installed peer. The table has the
median times over the rounds, in microseconds, and Halo's time divided by that of the best peer.
Peers are called before they are timed, and each result is compared with NumPy's. A peer that takes
more than 20 times as long as Halo is timed once. RAYON_NUM_THREADS sets the number of threads of all
of them.

Fields in space have a margin of points beyond their ends. Steps of heat and waves fill it again for
the next step, as Halo's boundaries demand: insulated walls and a periodic box. For gradients and
Laplacians it has zeros. Iterations and steps go on from call to call.
"""

import argparse
import csv
import functools
import os
import statistics
import subprocess
import tempfile
import time
from collections import namedtuple

THREADS = os.environ.get("RAYON_NUM_THREADS") or str(len(os.sched_getaffinity(0)))
for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
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

LIBRARIES = {"NumPy": np, "numba": numba, "Devito": devito, "REBOUND": rebound}

# A peer that takes this many times as long as Halo is timed once.
SLOW = 20

# Weights of central differences of 8th order: of the first derivative, and of the second, which has
# one for the point itself.
FIRST = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280])
SECOND = np.array([-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560])
RADIUS = 4

# The work of a peer. `start` makes the initial state, `call` is timed, and `result` is compared with
# that of NumPy after one call; without it nothing is compared. A call does the work `times` times.
Peer = namedtuple("Peer", "name call start result times", defaults=(None, None, 1))


@functools.cache
def jit(function):
    return numba.njit(parallel=True, fastmath=True)(function)


@functools.lru_cache(4)
def random(shape, dtype, seed=1):
    return np.random.default_rng(seed).random(shape, dtype)


def repeated(fields, step, count):
    """Calls of `count` steps, each from the first field to the second, which then change places."""

    def call():
        for _ in range(count):
            step(*fields)
            fields.reverse()

    return call


# Reductions


def reduction(in_numpy, in_numba, arrays):
    """Peers that reduce one array or two."""

    def peers(size, dtype):
        numbers = [random(size, dtype, seed) for seed in range(arrays)]
        ways = {"NumPy": in_numpy}
        if numba and in_numba:
            ways["numba"] = jit(in_numba)
        for name, way in ways.items():
            yield Peer(name, lambda way=way: way(*numbers), None, lambda way=way: way(*numbers))

    return peers


def numba_sum(x):
    total = x.dtype.type(0)
    for i in numba.prange(x.size):
        total += x[i]
    return total


def numba_least(x):
    least = x[0]
    for i in numba.prange(x.size):
        least = min(least, x[i])
    return least


def numba_squares(x):
    total = x.dtype.type(0)
    for i in numba.prange(x.size):
        total += x[i] * x[i]
    return total


def numba_dot(x, y):
    total = x.dtype.type(0)
    for i in numba.prange(x.size):
        total += x[i] * y[i]
    return total


sums = reduction(np.sum, numba_sum, 1)
least = reduction(np.min, numba_least, 1)
squares = reduction(lambda x: np.dot(x, x), numba_squares, 1)
dots = reduction(np.dot, numba_dot, 2)
places = reduction(np.argmin, None, 1)


# Heat on a plate


def numba_plate(a, b):
    quarter = a.dtype.type(0.25)
    for j in numba.prange(1, a.shape[0] - 1):
        for i in range(1, a.shape[1] - 1):
            b[j, i] = ((a[j, i + 1] + a[j, i - 1]) + (a[j + 1, i] + a[j - 1, i])) * quarter


def plate(count):
    """`count` of Jacobi's iterations, with a wall at 1 and three at 0."""

    def peers(size, dtype):
        plates = [np.zeros((size, size), dtype) for _ in range(2)]

        def start():
            for field in plates:
                field[:] = 0
                field[:, 0] = 1

        def in_numpy(a, b):
            b[1:-1, 1:-1] = ((a[1:-1, 2:] + a[1:-1, :-2]) + (a[2:, 1:-1] + a[:-2, 1:-1])) * dtype(
                0.25
            )

        yield Peer("NumPy", repeated(plates, in_numpy, count), start, lambda: plates[0])
        if numba:
            yield Peer("numba", repeated(plates, jit(numba_plate), count), start, lambda: plates[0])
        if devito:
            grid = devito.Grid(shape=(size, size), dtype=dtype)
            u = devito.TimeFunction(name="u", grid=grid, space_order=2)
            x, y = grid.dimensions
            around = u.subs(x, x + x.spacing) + u.subs(x, x - x.spacing)
            around += u.subs(y, y + y.spacing) + u.subs(y, y - y.spacing)
            mean = devito.Eq(u.forward, 0.25 * around, subdomain=grid.interior)

            def restart():
                u.data[:] = 0
                u.data[:, :, 0] = 1

            call = steps(mean, count)
            yield Peer("Devito", call, restart, lambda: u.data[count % 2])

    return peers


def steps(equations, count, first=0):
    """Calls of an operator that takes `count` steps."""
    apply = devito.Operator(equations)
    return lambda: apply.apply(time_m=first, time_M=first + count - 1)


# Fields in space


def padded(size, dtype, margin, mode):
    """A random field of `size`³ points in the middle of a larger one. `mode` is that of np.pad."""
    return np.pad(random((size,) * 3, dtype), margin, mode)


def fill_margin(field, margin, mode):
    """Fills the points beyond the ends."""
    inner = (slice(margin, -margin),) * 3
    field[:] = np.pad(field[inner], margin, mode)


def devito_margin(u, margin, mode):
    """Equations for the points beyond the ends of each axis in the next step."""
    step, dimensions = u.grid.stepping_dim + 1, u.grid.dimensions
    for axis, n in enumerate(u.grid.shape):

        def at(index):
            return u[(step, *dimensions[:axis], index, *dimensions[axis + 1 :])]

        # The index of each value, on the axis with its margin.
        sources = np.pad(np.arange(n), margin, mode)
        for index in (*range(-margin, 0), *range(n, n + margin)):
            yield devito.Eq(at(index), at(int(sources[margin + index])))


def shifted(field, margin, axis, by):
    """The neighbours of the inner points."""
    part = [slice(margin, n - margin) for n in field.shape]
    part[axis] = slice(margin + by, field.shape[axis] - margin + by)
    return field[tuple(part)]


# α Δt / h² along z, y and x: cells may be longer along an axis than along another.
RATIOS = (0.1, 0.11, 0.12)


def numba_heat(a, b, rz, ry, rx):
    two = a.dtype.type(2)
    nz, ny, nx = a.shape
    for k in numba.prange(1, nz - 1):
        for j in range(1, ny - 1):
            for i in range(1, nx - 1):
                twice = two * a[k, j, i]
                b[k, j, i] = (
                    a[k, j, i]
                    + rx * ((a[k, j, i - 1] + a[k, j, i + 1]) - twice)
                    + ry * ((a[k, j - 1, i] + a[k, j + 1, i]) - twice)
                    + rz * ((a[k - 1, j, i] + a[k + 1, j, i]) - twice)
                )
            b[k, j, 0] = b[k, j, 1]
            b[k, j, nx - 1] = b[k, j, nx - 2]
        for i in range(nx):
            b[k, 0, i] = b[k, 1, i]
            b[k, ny - 1, i] = b[k, ny - 2, i]
        if k == 1:
            b[0] = b[1]
        if k == nz - 2:
            b[nz - 1] = b[nz - 2]


def heat(count):
    """`count` steps of heat in space with seven points, between insulated walls."""

    def peers(size, dtype):
        ratios = [dtype(ratio) for ratio in RATIOS]
        initial = padded(size, dtype, 1, "edge")
        fields = [initial.copy(), initial.copy()]
        inner = (slice(1, -1),) * 3

        def start():
            for field in fields:
                field[:] = initial

        def in_numpy(a, b):
            here = a[inner]
            total = here.copy()
            for axis, ratio in enumerate(ratios):
                total += ratio * ((shifted(a, 1, axis, -1) + shifted(a, 1, axis, 1)) - 2 * here)
            b[inner] = total
            fill_margin(b, 1, "edge")

        yield Peer("NumPy", repeated(fields, in_numpy, count), start, lambda: fields[0][inner])
        if numba:
            step = jit(numba_heat)
            call = repeated(fields, lambda a, b: step(a, b, *ratios), count)
            yield Peer("numba", call, start, lambda: fields[0][inner])
        if devito:
            grid = devito.Grid(shape=(size,) * 3, extent=(size - 1,) * 3, dtype=dtype)
            u = devito.TimeFunction(name="u", grid=grid, space_order=2)
            terms = sum(r * d for r, d in zip(RATIOS, (u.dx2, u.dy2, u.dz2)))

            def restart():
                u.data_with_halo[:] = np.pad(initial[inner], u.space_order, "edge")

            equation = devito.Eq(u.forward, u + terms)
            call = steps([equation, *devito_margin(u, 1, "edge")], count)
            yield Peer("Devito", call, restart, lambda: u.data[count % 2])

    return peers


def sum_of_seconds(f, weights, k, j, i):
    """The sum of the second derivatives at a point, by central differences of 8th order."""
    own, w1, w2, w3, w4 = weights
    return (
        3 * own * f[k, j, i]
        + w1
        * (
            (f[k, j, i - 1] + f[k, j, i + 1])
            + (f[k, j - 1, i] + f[k, j + 1, i])
            + (f[k - 1, j, i] + f[k + 1, j, i])
        )
        + w2
        * (
            (f[k, j, i - 2] + f[k, j, i + 2])
            + (f[k, j - 2, i] + f[k, j + 2, i])
            + (f[k - 2, j, i] + f[k + 2, j, i])
        )
        + w3
        * (
            (f[k, j, i - 3] + f[k, j, i + 3])
            + (f[k, j - 3, i] + f[k, j + 3, i])
            + (f[k - 3, j, i] + f[k + 3, j, i])
        )
        + w4
        * (
            (f[k, j, i - 4] + f[k, j, i + 4])
            + (f[k, j - 4, i] + f[k, j + 4, i])
            + (f[k - 4, j, i] + f[k + 4, j, i])
        )
    )


if numba:
    sum_of_seconds = numba.njit(inline="always", fastmath=True)(sum_of_seconds)


def sums_in_numpy(f, dtype):
    """The same at all inner points."""
    total = 3 * dtype(SECOND[0]) * shifted(f, RADIUS, 0, 0)
    for m in range(1, RADIUS + 1):
        for axis in range(3):
            pair = shifted(f, RADIUS, axis, -m) + shifted(f, RADIUS, axis, m)
            total += dtype(SECOND[m]) * pair
    return total


def numba_waves(past, now, speed, weights):
    nz, ny, nx = speed.shape
    for c in numba.prange(nz):
        k = c + RADIUS
        for b in range(ny):
            j = b + RADIUS
            for a in range(nx):
                i = a + RADIUS
                sum = sum_of_seconds(now, weights, k, j, i)
                past[k, j, i] = (2 * now[k, j, i] - past[k, j, i]) + speed[c, b, a] * sum
            for m in range(RADIUS):
                past[k, j, m] = past[k, j, nx + m]
                past[k, j, nx + RADIUS + m] = past[k, j, RADIUS + m]
        for m in range(RADIUS):
            for i in range(nx + 2 * RADIUS):
                past[k, m, i] = past[k, ny + m, i]
                past[k, ny + RADIUS + m, i] = past[k, RADIUS + m, i]
        if c < RADIUS:
            past[k + nz] = past[k]
        if c >= nz - RADIUS:
            past[k - nz] = past[k]


def waves(count):
    """`count` steps of waves in a periodic box, of 8th order in space."""
    courant = 0.1

    def peers(size, dtype):
        shape = (size,) * 3
        initial = padded(size, dtype, RADIUS, "wrap")
        fields = [initial.copy(), initial.copy()]
        speed = np.full(shape, courant, dtype)
        inner = (slice(RADIUS, -RADIUS),) * 3

        def start():
            for field in fields:
                field[:] = initial

        def in_numpy(past, now):
            past[inner] = (2 * now[inner] - past[inner]) + speed * sums_in_numpy(now, dtype)
            fill_margin(past, RADIUS, "wrap")

        yield Peer("NumPy", repeated(fields, in_numpy, count), start, lambda: fields[1][inner])
        if numba:
            weights = SECOND.astype(dtype)
            step = jit(numba_waves)
            call = repeated(fields, lambda past, now: step(past, now, speed, weights), count)
            yield Peer("numba", call, start, lambda: fields[1][inner])
        if devito:
            grid = devito.Grid(shape=shape, extent=(size - 1,) * 3, dtype=dtype)
            u = devito.TimeFunction(name="u", grid=grid, space_order=8, time_order=2)
            c2 = devito.Function(name="c2", grid=grid)
            c2.data[:] = courant
            equation = devito.Eq(u.forward, 2 * u - u.backward + c2 * u.laplace)
            call = steps([equation, *devito_margin(u, RADIUS, "wrap")], count, first=1)

            def restart():
                u.data_with_halo[:] = np.pad(initial[inner], u.space_order, "wrap")

            yield Peer("Devito", call, restart, lambda: u.data[(count + 1) % 3])

    return peers


def numba_gradient(f, out, weights):
    n = f.shape[0]
    w1, w2, w3, w4 = weights
    for k in numba.prange(4, n - 4):
        for j in range(4, n - 4):
            for i in range(4, n - 4):
                out[2, k, j, i] = (
                    w1 * (f[k, j, i + 1] - f[k, j, i - 1])
                    + w2 * (f[k, j, i + 2] - f[k, j, i - 2])
                    + w3 * (f[k, j, i + 3] - f[k, j, i - 3])
                    + w4 * (f[k, j, i + 4] - f[k, j, i - 4])
                )
                out[1, k, j, i] = (
                    w1 * (f[k, j + 1, i] - f[k, j - 1, i])
                    + w2 * (f[k, j + 2, i] - f[k, j - 2, i])
                    + w3 * (f[k, j + 3, i] - f[k, j - 3, i])
                    + w4 * (f[k, j + 4, i] - f[k, j - 4, i])
                )
                out[0, k, j, i] = (
                    w1 * (f[k + 1, j, i] - f[k - 1, j, i])
                    + w2 * (f[k + 2, j, i] - f[k - 2, j, i])
                    + w3 * (f[k + 3, j, i] - f[k - 3, j, i])
                    + w4 * (f[k + 4, j, i] - f[k - 4, j, i])
                )


def gradient(size, dtype):
    """All points, with zero beyond the ends."""
    f = padded(size, dtype, RADIUS, "constant")
    out = np.zeros((3,) + f.shape, dtype)
    inner = (slice(RADIUS, -RADIUS),) * 3
    result = lambda: out[(slice(None),) + inner]

    def in_numpy():
        for axis in range(3):
            total = 0
            for m, weight in enumerate(FIRST, 1):
                total = total + dtype(weight) * (
                    shifted(f, RADIUS, axis, m) - shifted(f, RADIUS, axis, -m)
                )
            out[(axis,) + inner] = total

    yield Peer("NumPy", in_numpy, None, result)
    if numba:
        weights = FIRST.astype(dtype)
        of_all = jit(numba_gradient)
        yield Peer("numba", lambda: of_all(f, out, weights), None, result)
    if devito:
        field, grid = devito_field(f[inner])
        results = [devito.Function(name=f"g{axis}", grid=grid) for axis in range(3)]
        derivatives = [
            getattr(field, f"d{d.name}c" if hasattr(field, f"d{d.name}c") else f"d{d.name}")
            for d in grid.dimensions
        ]
        apply = devito.Operator([devito.Eq(g, d) for g, d in zip(results, derivatives)])
        inner_of = lambda: np.array([g.data for g in results])
        yield Peer("Devito", apply.apply, None, inner_of)


def numba_laplacian(f, out, weights):
    n = f.shape[0]
    for k in numba.prange(RADIUS, n - RADIUS):
        for j in range(RADIUS, n - RADIUS):
            for i in range(RADIUS, n - RADIUS):
                out[k, j, i] = sum_of_seconds(f, weights, k, j, i)


def laplacian(size, dtype):
    """All points, with zero beyond the ends."""
    f = padded(size, dtype, RADIUS, "constant")
    out = np.zeros(f.shape, dtype)
    inner = (slice(RADIUS, -RADIUS),) * 3

    def in_numpy():
        out[inner] = sums_in_numpy(f, dtype)

    yield Peer("NumPy", in_numpy, None, lambda: out[inner])
    if numba:
        weights = SECOND.astype(dtype)
        of_all = jit(numba_laplacian)
        yield Peer("numba", lambda: of_all(f, out, weights), None, lambda: out[inner])
    if devito:
        field, grid = devito_field(f[inner])
        total = devito.Function(name="l", grid=grid)
        apply = devito.Operator(devito.Eq(total, field.laplace))
        yield Peer("Devito", apply.apply, None, lambda: total.data)


def devito_field(f):
    """A field of Devito, for derivatives of 8th order, and its grid with spacing 1."""
    grid = devito.Grid(shape=f.shape, extent=[n - 1 for n in f.shape], dtype=f.dtype.type)
    field = devito.Function(name="f", grid=grid, space_order=8)
    field.data[:] = f
    return field, grid


# Bodies

SOFTENING = 1e-4


def numba_attraction(x, y, z, mass, softening, out):
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


def attraction(size, dtype):
    place, mass = random((size, 3), dtype), random(size, dtype)
    out = np.zeros((size, 3), dtype)
    softening = dtype(SOFTENING)

    def in_numpy():
        for i in range(size):
            r = place - place[i]
            s = mass / ((r * r).sum(1) + softening) ** dtype(1.5)
            out[i] = (r * s[:, None]).sum(0)

    yield Peer("NumPy", in_numpy, None, lambda: out)
    if numba:

        x, y, z = (np.ascontiguousarray(place[:, axis]) for axis in range(3))
        pull = jit(numba_attraction)
        yield Peer("numba", lambda: pull(x, y, z, mass, softening, out), None, lambda: out)


def leapfrog(size, dtype):
    """Steps of REBOUND: each evaluates the accelerations once, each pair once."""
    if rebound:
        simulation = rebound.Simulation()
        simulation.softening = SOFTENING**0.5
        simulation.gravity = "basic"
        simulation.integrator = "leapfrog"
        simulation.dt = 1e-9
        for at, m in zip(random((size, 3), dtype), random(size, dtype)):
            simulation.add(m=m, x=at[0], y=at[1], z=at[2])
        # A call from Python takes as long as several steps of few bodies.
        times = max(1, 100_000 // size**2)
        yield Peer("REBOUND", lambda: simulation.steps(times), times=times)


# The work

F32, F64 = np.float32, np.float64
BOTH = {"f32": F32, "f64": F64}


def of_both(row, peers):
    return [(row.format(name), peers, dtype) for name, dtype in BOTH.items()]


# For each family: the sizes for halo-bench, and its rows with their peers.
WORK = {
    "reduction": (
        [1 << 10, 1 << 16, 1 << 20, 1 << 26],
        of_both("reduction, CPU port, sum {}", sums)
        + of_both("reduction, CPU port, min {}", least)
        + of_both("reduction, CPU port, sum of squares {}", squares)
        + of_both("reduction, CPU port, dot product {}", dots)
        + of_both("reduction, CPU port, argmin {}", places),
    ),
    "heat2d": (
        [64, 256, 1024, 2048],
        of_both("heat2d, CPU port, {}", plate(1))
        + of_both("heat2d, CPU port, 100 iterations, {}", plate(100)),
    ),
    "heat3d": (
        [32, 64, 128, 256],
        of_both("heat3d, CPU port, {}", heat(1))
        + of_both("heat3d, CPU port, 20 steps, {}", heat(20)),
    ),
    "wave3d": (
        [32, 64, 128, 256],
        of_both("wave3d, CPU port, {}", waves(1))
        + of_both("wave3d, CPU port, 20 steps, {}", waves(20)),
    ),
    "derivative3d": (
        [16, 64, 256],
        of_both("derivative3d Gradient, CPU port, {}", gradient)
        + of_both("derivative3d Laplacian, CPU port, {}", laplacian),
    ),
    "nbody": (
        [16, 1024, 16384],
        of_both("nbody, CPU port, structure of arrays, {}", attraction)
        + [("nbody, leapfrog step, f64", leapfrog, F64)],
    ),
}


def timed(peer):
    """The time of the work: the mean over as many calls as take 20 ms."""
    start = time.perf_counter()
    peer.call()
    once = time.perf_counter() - start
    count = max(1, int(0.02 / (once + 1e-9)))
    if count > 1:
        start = time.perf_counter()
        for _ in range(count):
            peer.call()
        once = (time.perf_counter() - start) / count
    return once / peer.times


def rows_of(program, family, size, folder):
    """The medians of halo-bench's rows, in seconds."""
    path = os.path.join(folder, "rows.csv")
    command = [program, "--device", "cpu", "--family", family, "--size", str(size)]
    command += ["--launches", "5", "--csv", path]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(path, newline="") as file:
        lines = csv.DictReader(line for line in file if not line.startswith("#"))
        return {
            line["kernel"]: float(line["time_median_s"])
            for line in lines
            if line["by"] == "rust" and line["time_median_s"]
        }


def checked(peers, row, dtype):
    """The peers, each after a call whose result was compared with that of the first."""
    expected = None
    for peer in peers:
        if peer.start:
            peer.start()
        peer.call()
        if peer.result:
            result = np.array(peer.result(), F64)
            if expected is None:
                expected = result
            error = np.abs(result - expected).max() / (np.abs(expected).max() or 1)
            # Devito writes its weights with nine digits, and many steps enlarge the error.
            bound = max(2e3 * np.finfo(dtype).eps, 1e-6)
            assert error < bound, f"{peer.name}, {row}: {error}"
    return peers


def compare(program, family, size, rows, rounds, folder):
    """Prints a line for each row."""
    peers = {row: checked(list(make(size, dtype)), row, dtype) for row, make, dtype in rows}
    halo = {row: [] for row in peers}
    times = {row: {peer.name: [] for peer in peers[row]} for row in peers}
    for _ in range(rounds):
        measured = rows_of(program, family, size, folder)
        for row in peers:
            halo[row].append(measured[row])
            for peer in peers[row]:
                before = times[row][peer.name]
                if not before or before[0] < SLOW * halo[row][0]:
                    before.append(timed(peer))
    for row in peers:
        own = statistics.median(halo[row])
        medians = {name: statistics.median(all) for name, all in times[row].items()}
        others = [f"{1e6 * medians[name]:.4g}" if name in medians else "" for name in LIBRARIES]
        ratio = f"{own / min(medians.values()):.2f}" if medians else ""
        print(f"| {row}, {size} | {1e6 * own:.4g} | {' | '.join(others)} | {ratio} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", help="halo-bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--family", choices=WORK, action="append", help="only this family")
    parser.add_argument(
        "--sizes", type=int, help="only so many sizes of each family, from the least"
    )
    arguments = parser.parse_args()
    versions = [
        f"{name} {module.__version__}" if module else f"{name} is not installed"
        for name, module in LIBRARIES.items()
    ]
    print(f"{THREADS} threads; {', '.join(versions)}\n")
    print(f"| µs | Halo | {' | '.join(LIBRARIES)} | Halo / the best |")
    print("|---|" + "---:|" * (2 + len(LIBRARIES)))
    with tempfile.TemporaryDirectory() as folder:
        for family in arguments.family or WORK:
            sizes, rows = WORK[family]
            for size in sizes[: arguments.sizes]:
                compare(arguments.program, family, size, rows, arguments.rounds, folder)


if __name__ == "__main__":
    main()
