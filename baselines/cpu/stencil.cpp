// Stencils in the periodic plane: heat with a five-point stencil, and Gray and Scott's reaction.
//
// in: nothing. out: a first set of fields, x fastest, and a second set, which is overwritten. After
// s steps set s % 2 is the result. n: nx, ny, 1, s. p: the ratio α Δt / h² for heat; the diffusion
// of v, the feed rate and the kill rate for the reaction.

#include "peer.h"

namespace {

// Row j, the rows next to it, and the row to write.
template <typename T> struct Rows {
    const T *__restrict here, *__restrict south, *__restrict north;
    T *__restrict result;

    Rows(const void *from, void *to, const std::uint64_t *n, std::int64_t j)
    {
        const std::int64_t nx = n[0], ny = n[1];
        const T *field = static_cast<const T *>(from);
        here = field + j * nx;
        south = field + (j == 0 ? ny - 1 : j - 1) * nx;
        north = field + (j == ny - 1 ? 0 : j + 1) * nx;
        result = static_cast<T *>(to) + j * nx;
    }
};

// Calls point(i, west, east) for all points of a row.
template <typename Point> inline void each_point(std::int64_t nx, Point point)
{
#pragma omp simd
    for (std::int64_t i = 1; i < nx - 1; ++i)
        point(i, i - 1, i + 1);
    point(0, nx - 1, std::min<std::int64_t>(1, nx - 1));
    point(nx - 1, std::max<std::int64_t>(0, nx - 2), 0);
}

template <typename T>
void five_points(void *const *out, const std::uint64_t *n, const double *p, std::int64_t high)
{
    const T ratio = T(p[0]);
    steps_in_slabs(n, high, [=](std::int64_t s, std::int64_t j, std::int64_t) {
        const Rows<T> rows(out[s % 2], out[(s + 1) % 2], n, j);
        const T *__restrict u = rows.here, *__restrict south = rows.south,
                *__restrict north = rows.north;
        T *__restrict result = rows.result;
        each_point(n[0], [=](std::int64_t i, std::int64_t west, std::int64_t east) {
            result[i] = u[i] + ratio * (((u[west] + u[east]) + (south[i] + north[i])) - 4 * u[i]);
        });
    });
}

template <typename T>
void gray_scott(void *const *out, const std::uint64_t *n, const double *p, std::int64_t high)
{
    const T diffusion = T(p[0]), feed = T(p[1]), kill = T(p[2]);
    steps_in_slabs(n, high, [=](std::int64_t s, std::int64_t j, std::int64_t) {
        void *const *from = out + s % 2 * 2, *const *to = out + (s + 1) % 2 * 2;
        const Rows<T> us(from[0], to[0], n, j), vs(from[1], to[1], n, j);
        const T *__restrict u = us.here, *__restrict us_ = us.south, *__restrict un = us.north;
        const T *__restrict v = vs.here, *__restrict vs_ = vs.south, *__restrict vn = vs.north;
        T *__restrict new_u = us.result, *__restrict new_v = vs.result;
        each_point(n[0], [=](std::int64_t i, std::int64_t west, std::int64_t east) {
            const T spread_u = (u[west] + u[east]) + (us_[i] + un[i]) - 4 * u[i];
            const T spread_v = (v[west] + v[east]) + (vs_[i] + vn[i]) - 4 * v[i];
            const T reacting = u[i] * v[i] * v[i];
            new_u[i] = u[i] + (2 * diffusion * spread_u - reacting + feed * (1 - u[i]));
            new_v[i] = v[i] + (diffusion * spread_v + reacting - (feed + kill) * v[i]);
        });
    });
}

} // namespace

PEER(stencil_five_points_rows_f32) { UNUSED(in), five_points<float>(out, n, p, 1); }
PEER(stencil_five_points_rows_f64) { UNUSED(in), five_points<double>(out, n, p, 1); }
PEER(stencil_five_points_slabs_f32) { UNUSED(in), five_points<float>(out, n, p, 32); }
PEER(stencil_five_points_slabs_f64) { UNUSED(in), five_points<double>(out, n, p, 32); }
PEER(stencil_gray_scott_rows_f32) { UNUSED(in), gray_scott<float>(out, n, p, 1); }
PEER(stencil_gray_scott_rows_f64) { UNUSED(in), gray_scott<double>(out, n, p, 1); }
PEER(stencil_gray_scott_slabs_f32) { UNUSED(in), gray_scott<float>(out, n, p, 32); }
PEER(stencil_gray_scott_slabs_f64) { UNUSED(in), gray_scott<double>(out, n, p, 32); }
