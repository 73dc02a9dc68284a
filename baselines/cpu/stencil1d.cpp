// Stencils on a line. Elements that lack a neighbour are not written.
//
// in: n elements. out: n elements. n: n. p: the coefficients.

#include "peer.h"

namespace {

// The nine-point antisymmetric stencil: p has the four coefficients of i + 1 … i + 4.
template <typename T>
void antisymmetric(const void *const *in, void *const *out, const std::uint64_t *n,
                   const double *p)
{
    const T *__restrict x = static_cast<const T *>(in[0]);
    T *__restrict y = static_cast<T *>(out[0]);
    const std::int64_t count = n[0];
    const T c1 = T(p[0]), c2 = T(p[1]), c3 = T(p[2]), c4 = T(p[3]);
#pragma omp parallel for simd schedule(static) if (n[0] > FEW)
    for (std::int64_t i = 4; i < count - 4; ++i)
        y[i] = c1 * (x[i + 1] - x[i - 1]) + c2 * (x[i + 2] - x[i - 2]) +
               c3 * (x[i + 3] - x[i - 3]) + c4 * (x[i + 4] - x[i - 4]);
}

// Seventeen points with arbitrary coefficients: p has the coefficients of i - 8 … i + 8.
template <typename T>
void any(const void *const *in, void *const *out, const std::uint64_t *n, const double *p)
{
    constexpr int POINTS = 17, RADIUS = 8;
    const T *__restrict x = static_cast<const T *>(in[0]);
    T *__restrict y = static_cast<T *>(out[0]);
    const std::int64_t count = n[0];
    T c[POINTS];
    for (int place = 0; place < POINTS; ++place)
        c[place] = T(p[place]);
#pragma omp parallel for simd schedule(static) firstprivate(c) if (n[0] > FEW)
    for (std::int64_t i = RADIUS; i < count - RADIUS; ++i) {
        T sum = 0;
#pragma GCC unroll 17
        for (int place = 0; place < POINTS; ++place)
            sum += c[place] * x[i + place - RADIUS];
        y[i] = sum;
    }
}

} // namespace

PEER(stencil1d_antisymmetric_f32) { antisymmetric<float>(in, out, n, p); }
PEER(stencil1d_any_f32) { any<float>(in, out, n, p); }
PEER(stencil1d_any_f64) { any<double>(in, out, n, p); }
