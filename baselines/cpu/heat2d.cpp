// Jacobi iterations of the heat equation on a plate with Dirichlet walls: each inner point becomes
// the mean of its four neighbours.
//
// in: nothing. out: two plates of ny rows of nx points, equal before the first call. After s
// iterations plate s % 2 is the result; if s is even, the next call starts from it. n: nx, ny, s.

#include "peer.h"

#include <algorithm>
#include <omp.h>
#include <vector>

#if defined(__FAST_MATH__) && defined(__SSE2__)
#include <immintrin.h>
#endif

namespace {

// Flushes subnormal numbers to 0, as a program linked with -Ofast does from its start. Points that
// little heat has reached are all subnormal.
class FlushSubnormals {
#if defined(__FAST_MATH__) && defined(__SSE2__)
    unsigned before = _mm_getcsr();

  public:
    FlushSubnormals() { _mm_setcsr(before | 0x8040); }
    ~FlushSubnormals() { _mm_setcsr(before); }
#else
  public:
    FlushSubnormals() {}
#endif
};

// Updates the inner points of a row.
template <typename T>
void iterate_row(std::int64_t nx, const T *__restrict south, const T *__restrict row,
               const T *__restrict north, T *__restrict result)
{
#pragma omp simd
    for (std::int64_t i = 1; i < nx - 1; ++i)
        result[i] = ((row[i + 1] + row[i - 1]) + (north[i] + south[i])) * T(0.25);
}

// One iteration after the other, in one parallel region.
template <typename T> void plain(void *const *out, const std::uint64_t *n)
{
    const std::int64_t nx = n[0], ny = n[1], iterations = n[2];
#pragma omp parallel if (n[0] * n[1] > FEW)
    {
        const FlushSubnormals mode;
        for (std::int64_t iteration = 0; iteration < iterations; ++iteration) {
            const T *from = static_cast<const T *>(out[iteration % 2]);
            T *to = static_cast<T *>(out[(iteration + 1) % 2]);
#pragma omp for schedule(static)
            for (std::int64_t j = 1; j < ny - 1; ++j) {
                const T *row = from + j * nx;
                iterate_row(nx, row - nx, row, row + nx, to + j * nx);
            }
        }
    }
}

// Rows per level of a band: three are read while one is written.
constexpr std::int64_t RING = 4;

// Computes `depth` iterations of the rows first .. last in one pass over them. The front moves row
// by row, and each level is one row behind the level below it. A level extends beyond the band by
// as many rows as there are levels above it; both neighbouring threads compute these rows.
template <typename T>
void band(std::int64_t nx, std::int64_t ny, std::int64_t depth, std::int64_t first,
          std::int64_t last, const T *from, T *to, T *rings)
{
    const auto row_of = [=](std::int64_t level, std::int64_t j) -> const T * {
        if (level == 0 || j == 0 || j == ny - 1)
            return from + j * nx;
        return rings + ((level - 1) * RING + j % RING) * nx;
    };
    for (std::int64_t front = first - depth + 1; front < last + depth; ++front) {
        for (std::int64_t level = 1; level <= depth; ++level) {
            const std::int64_t j = front - (level - 1), above = depth - level;
            if (j < std::max<std::int64_t>(1, first - above) ||
                j >= std::min(ny - 1, last + above))
                continue;
            const T *row = row_of(level - 1, j);
            T *result = level == depth ? to + j * nx
                                       : rings + ((level - 1) * RING + j % RING) * nx;
            iterate_row(nx, row_of(level - 1, j - 1), row, row_of(level - 1, j + 1), result);
            result[0] = row[0];
            result[nx - 1] = row[nx - 1];
        }
    }
}

// Up to DEPTH iterations per pass over memory; each thread has its own band.
template <typename T, std::int64_t DEPTH> void blocked(void *const *out, const std::uint64_t *n)
{
    const std::int64_t nx = n[0], ny = n[1], iterations = n[2];
    // The plates swap roles at each pass, so the number of passes must be even or odd like the
    // number of iterations.
    std::int64_t passes = (iterations + DEPTH - 1) / DEPTH;
    passes += (passes + iterations) % 2;
#pragma omp parallel if (n[0] * n[1] > FEW)
    {
        const FlushSubnormals mode;
        static thread_local std::vector<T> rings;
        rings.resize(DEPTH * RING * nx);
        const std::int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
        const std::int64_t rows = ny - 2;
        const std::int64_t first = 1 + rows * me / threads, last = 1 + rows * (me + 1) / threads;
        for (std::int64_t pass = 0; pass < passes; ++pass) {
            // Distributes the iterations evenly over the passes.
            const std::int64_t depth =
                iterations * (pass + 1) / passes - iterations * pass / passes;
            band(nx, ny, depth, first, last, static_cast<const T *>(out[pass % 2]),
                 static_cast<T *>(out[(pass + 1) % 2]), rings.data());
#pragma omp barrier
        }
    }
}

} // namespace

PEER(heat2d_plain_f32) { UNUSED(in), UNUSED(p), plain<float>(out, n); }
PEER(heat2d_plain_f64) { UNUSED(in), UNUSED(p), plain<double>(out, n); }
PEER(heat2d_blocked8_f32) { UNUSED(in), UNUSED(p), blocked<float, 8>(out, n); }
PEER(heat2d_blocked8_f64) { UNUSED(in), UNUSED(p), blocked<double, 8>(out, n); }
PEER(heat2d_blocked16_f32) { UNUSED(in), UNUSED(p), blocked<float, 16>(out, n); }
PEER(heat2d_blocked16_f64) { UNUSED(in), UNUSED(p), blocked<double, 16>(out, n); }
