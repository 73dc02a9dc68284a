// Heat in space, with seven points, in an insulated box whose points are the centres of cells:
// beyond an end lies what lies before it.
//
// in: nothing. out: two fields, x fastest, alike before the first call; after s steps field
// s % 2 is the result. n: nx, ny, nz, s. p: α Δt / h² along x, y and z.

#include "peer.h"

#include <algorithm>

namespace {

template <typename T> struct Step {
    T x, y, z;

    // Row j of plane k.
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

// Each thread has slabs of `high` rows, which it goes through plane by plane; without a height,
// whole planes.
template <typename T>
void steps(void *const *out, const std::uint64_t *n, const double *p, std::int64_t high)
{
    const Step<T> step = {T(p[0]), T(p[1]), T(p[2])};
    const std::int64_t ny = n[1], nz = n[2], count = n[3];
    if (high == 0)
        high = ny;
    const std::int64_t slabs = (ny + high - 1) / high;
    // Few slabs are cut along z as well, so that there is work for all.
    const std::int64_t deep = high == ny ? 1 : std::max<std::int64_t>(16, nz / 2);
    const std::int64_t cuts = (nz + deep - 1) / deep;
#pragma omp parallel if (n[0] * n[1] * n[2] > FEW)
    for (std::int64_t s = 0; s < count; ++s) {
        const T *from = static_cast<const T *>(out[s % 2]);
        T *to = static_cast<T *>(out[(s + 1) % 2]);
#pragma omp for collapse(2) schedule(static)
        for (std::int64_t cut = 0; cut < cuts; ++cut)
            for (std::int64_t slab = 0; slab < slabs; ++slab)
                for (std::int64_t k = cut * deep; k < std::min(nz, (cut + 1) * deep); ++k)
                    for (std::int64_t j = slab * high; j < std::min(ny, (slab + 1) * high); ++j)
                        step.row(from, to, n, j, k);
    }
}

} // namespace

PEER(heat3d_planes_f32) { UNUSED(in), steps<float>(out, n, p, 0); }
PEER(heat3d_planes_f64) { UNUSED(in), steps<double>(out, n, p, 0); }
PEER(heat3d_slabs_f32) { UNUSED(in), steps<float>(out, n, p, 32); }
PEER(heat3d_slabs_f64) { UNUSED(in), steps<double>(out, n, p, 32); }
