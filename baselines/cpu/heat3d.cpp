// Heat in space with a seven-point stencil, in an insulated box whose points are cell centres: the
// value beyond an end equals the value before it.
//
// in: nothing. out: two fields, x fastest, equal before the first call; after s steps field s % 2
// is the result. n: nx, ny, nz, s. p: α Δt / h² along x, y and z.

#include "peer.h"

namespace {

template <typename T> struct Step {
    T x, y, z;

    // Updates row j of plane k.
    void row(const T *from, T *to, const std::uint64_t *n, std::int64_t j, std::int64_t k) const
    {
        const std::int64_t nx = n[0], ny = n[1], nz = n[2];
        const auto at = [=](std::int64_t j, std::int64_t k) {
            j = std::min(std::max<std::int64_t>(j, 0), ny - 1);
            k = std::min(std::max<std::int64_t>(k, 0), nz - 1);
            return from + (k * ny + j) * nx;
        };
        const T *__restrict u = at(j, k);
        const T *__restrict south = at(j - 1, k), *__restrict north = at(j + 1, k);
        const T *__restrict below = at(j, k - 1), *__restrict above = at(j, k + 1);
        T *__restrict result = to + (k * ny + j) * nx;
        const Step c = *this;
        const auto point = [=](std::int64_t i, T west, T east) {
            return u[i] + c.x * ((west + east) - 2 * u[i]) +
                   c.y * ((south[i] + north[i]) - 2 * u[i]) +
                   c.z * ((below[i] + above[i]) - 2 * u[i]);
        };
#pragma omp simd
        for (std::int64_t i = 1; i < nx - 1; ++i)
            result[i] = point(i, u[i - 1], u[i + 1]);
        result[0] = point(0, u[0], u[std::min<std::int64_t>(1, nx - 1)]);
        result[nx - 1] = point(nx - 1, u[std::max<std::int64_t>(0, nx - 2)], u[nx - 1]);
    }
};

template <typename T>
void steps(void *const *out, const std::uint64_t *n, const double *p, std::int64_t high)
{
    const Step<T> step = {T(p[0]), T(p[1]), T(p[2])};
    steps_in_slabs(n, high, [=](std::int64_t s, std::int64_t j, std::int64_t k) {
        step.row(static_cast<const T *>(out[s % 2]), static_cast<T *>(out[(s + 1) % 2]), n, j, k);
    });
}

} // namespace

PEER(heat3d_planes_f32) { UNUSED(in), steps<float>(out, n, p, 0); }
PEER(heat3d_planes_f64) { UNUSED(in), steps<double>(out, n, p, 0); }
PEER(heat3d_slabs_f32) { UNUSED(in), steps<float>(out, n, p, 32); }
PEER(heat3d_slabs_f64) { UNUSED(in), steps<double>(out, n, p, 32); }
