// Gradient and Laplacian of a 3-D field by central differences of the 8th order.
// Along each axis the field is periodic, and its last point repeats the first.
//
// in: the field, x fastest. out: three components, or the Laplacian. n: nx, ny, nz, each at least
// 6. p: 1 / spacing of each axis.

#include "peer.h"

#include <algorithm>
#include <initializer_list>

namespace {

constexpr int RADIUS = 4;
constexpr double FIRST[RADIUS + 1] = {0.0, 4.0 / 5, -1.0 / 5, 4.0 / 105, -1.0 / 280};
constexpr double SECOND[RADIUS + 1] = {-205.0 / 72, 8.0 / 5, -1.0 / 5, 8.0 / 315, -1.0 / 560};

// The point at a `distance` from point `i` of `n` points. The period is n - 1, and no distance is
// longer.
inline std::int64_t around(std::int64_t i, std::int64_t distance, std::int64_t n)
{
    const std::int64_t period = n - 1, place = i + distance;
    return place < 0 ? place + period : place >= period ? place - period : place;
}

// Calls of(i, window) for the first and the last points of a row. window[-RADIUS … RADIUS] are the
// row's values around point i.
template <typename T, typename F> void ends_of(const T *f, std::int64_t nx, F of)
{
    const std::int64_t ends = std::min<std::int64_t>(RADIUS, (nx + 1) / 2);
    for (const std::int64_t first : {std::int64_t(0), nx - ends}) {
        T window[3 * RADIUS];
        for (std::int64_t w = 0; w < ends + 2 * RADIUS; ++w)
            window[w] = f[around(first, w - RADIUS, nx)];
        for (std::int64_t i = 0; i < ends; ++i)
            of(first + i, window + i + RADIUS);
    }
}

// A row and its neighbouring rows along y and z; index d is the distance.
template <typename T> struct Rows {
    const T *row, *south[RADIUS + 1], *north[RADIUS + 1], *below[RADIUS + 1], *above[RADIUS + 1];

    Rows(const T *f, const std::uint64_t *n, std::int64_t j, std::int64_t k)
    {
        const std::int64_t nx = n[0], ny = n[1], nz = n[2];
        row = f + (k * ny + j) * nx;
        for (int d = 1; d <= RADIUS; ++d) {
            south[d] = f + (k * ny + around(j, -d, ny)) * nx;
            north[d] = f + (k * ny + around(j, d, ny)) * nx;
            below[d] = f + (around(k, -d, nz) * ny + j) * nx;
            above[d] = f + (around(k, d, nz) * ny + j) * nx;
        }
    }
};

// Computes the three derivatives at the points of a row.
template <typename T> struct Gradient {
    T cx[RADIUS + 1], cy[RADIUS + 1], cz[RADIUS + 1];

    explicit Gradient(const double *p)
    {
        for (int d = 0; d <= RADIUS; ++d)
            cx[d] = T(FIRST[d] * p[0]), cy[d] = T(FIRST[d] * p[1]), cz[d] = T(FIRST[d] * p[2]);
    }

    void row(const Rows<T> &rows, std::int64_t nx, std::int64_t offset, void *const *out) const
    {
        T *__restrict x = static_cast<T *>(out[0]) + offset;
        T *__restrict y = static_cast<T *>(out[1]) + offset;
        T *__restrict z = static_cast<T *>(out[2]) + offset;
        const T *__restrict f = rows.row;
        const T *__restrict s1 = rows.south[1], *__restrict n1 = rows.north[1];
        const T *__restrict s2 = rows.south[2], *__restrict n2 = rows.north[2];
        const T *__restrict s3 = rows.south[3], *__restrict n3 = rows.north[3];
        const T *__restrict s4 = rows.south[4], *__restrict n4 = rows.north[4];
        const T *__restrict b1 = rows.below[1], *__restrict a1 = rows.above[1];
        const T *__restrict b2 = rows.below[2], *__restrict a2 = rows.above[2];
        const T *__restrict b3 = rows.below[3], *__restrict a3 = rows.above[3];
        const T *__restrict b4 = rows.below[4], *__restrict a4 = rows.above[4];
        const Gradient c = *this;
#pragma omp simd
        for (std::int64_t i = RADIUS; i < nx - RADIUS; ++i)
            x[i] = c.cx[1] * (f[i + 1] - f[i - 1]) + c.cx[2] * (f[i + 2] - f[i - 2]) +
                   c.cx[3] * (f[i + 3] - f[i - 3]) + c.cx[4] * (f[i + 4] - f[i - 4]);
        ends_of(f, nx, [=](std::int64_t i, const T *w) {
            x[i] = c.cx[1] * (w[1] - w[-1]) + c.cx[2] * (w[2] - w[-2]) +
                   c.cx[3] * (w[3] - w[-3]) + c.cx[4] * (w[4] - w[-4]);
        });
#pragma omp simd
        for (std::int64_t i = 0; i < nx; ++i) {
            y[i] = c.cy[1] * (n1[i] - s1[i]) + c.cy[2] * (n2[i] - s2[i]) +
                   c.cy[3] * (n3[i] - s3[i]) + c.cy[4] * (n4[i] - s4[i]);
            z[i] = c.cz[1] * (a1[i] - b1[i]) + c.cz[2] * (a2[i] - b2[i]) +
                   c.cz[3] * (a3[i] - b3[i]) + c.cz[4] * (a4[i] - b4[i]);
        }
    }
};

template <typename T> struct Laplacian {
    T cx[RADIUS + 1], cy[RADIUS + 1], cz[RADIUS + 1], centre;

    explicit Laplacian(const double *p)
    {
        for (int d = 0; d <= RADIUS; ++d) {
            cx[d] = T(SECOND[d] * p[0] * p[0]);
            cy[d] = T(SECOND[d] * p[1] * p[1]);
            cz[d] = T(SECOND[d] * p[2] * p[2]);
        }
        centre = T(SECOND[0] * (p[0] * p[0] + p[1] * p[1] + p[2] * p[2]));
    }

    void row(const Rows<T> &rows, std::int64_t nx, std::int64_t offset, void *const *out) const
    {
        T *__restrict result = static_cast<T *>(out[0]) + offset;
        const T *__restrict f = rows.row;
        const T *__restrict s1 = rows.south[1], *__restrict n1 = rows.north[1];
        const T *__restrict s2 = rows.south[2], *__restrict n2 = rows.north[2];
        const T *__restrict s3 = rows.south[3], *__restrict n3 = rows.north[3];
        const T *__restrict s4 = rows.south[4], *__restrict n4 = rows.north[4];
        const T *__restrict b1 = rows.below[1], *__restrict a1 = rows.above[1];
        const T *__restrict b2 = rows.below[2], *__restrict a2 = rows.above[2];
        const T *__restrict b3 = rows.below[3], *__restrict a3 = rows.above[3];
        const T *__restrict b4 = rows.below[4], *__restrict a4 = rows.above[4];
        const Laplacian c = *this;
        // The terms along y and z, and the centre.
        const auto across = [=](std::int64_t i) {
            return c.centre * f[i] + c.cy[1] * (n1[i] + s1[i]) + c.cy[2] * (n2[i] + s2[i]) +
                   c.cy[3] * (n3[i] + s3[i]) + c.cy[4] * (n4[i] + s4[i]) +
                   c.cz[1] * (a1[i] + b1[i]) + c.cz[2] * (a2[i] + b2[i]) +
                   c.cz[3] * (a3[i] + b3[i]) + c.cz[4] * (a4[i] + b4[i]);
        };
#pragma omp simd
        for (std::int64_t i = RADIUS; i < nx - RADIUS; ++i)
            result[i] = across(i) + c.cx[1] * (f[i + 1] + f[i - 1]) +
                        c.cx[2] * (f[i + 2] + f[i - 2]) + c.cx[3] * (f[i + 3] + f[i - 3]) +
                        c.cx[4] * (f[i + 4] + f[i - 4]);
        ends_of(f, nx, [=](std::int64_t i, const T *w) {
            result[i] = across(i) + c.cx[1] * (w[1] + w[-1]) + c.cx[2] * (w[2] + w[-2]) +
                        c.cx[3] * (w[3] + w[-3]) + c.cx[4] * (w[4] + w[-4]);
        });
    }
};

// Goes through the field plane by plane.
template <typename T, template <typename> class Operator>
void planes(const void *const *in, void *const *out, const std::uint64_t *n, const double *p)
{
    const T *f = static_cast<const T *>(in[0]);
    const Operator<T> op(p);
    const std::int64_t nx = n[0], ny = n[1], nz = n[2];
#pragma omp parallel for collapse(2) schedule(static) if (n[0] * n[1] * n[2] > FEW)
    for (std::int64_t k = 0; k < nz; ++k)
        for (std::int64_t j = 0; j < ny; ++j)
            op.row(Rows<T>(f, n, j, k), nx, (k * ny + j) * nx, out);
}

// Goes through the field in slabs of 16 rows, each through all planes, so that nine planes of a
// slab stay in the cache.
template <typename T, template <typename> class Operator>
void slabs(const void *const *in, void *const *out, const std::uint64_t *n, const double *p)
{
    const T *f = static_cast<const T *>(in[0]);
    const Operator<T> op(p);
    const std::int64_t nx = n[0], ny = n[1], nz = n[2];
    const std::int64_t high = 16, slabs = (ny + high - 1) / high;
    // Also cuts slabs along z, so that there is work for all threads if there are few slabs.
    const std::int64_t deep = std::max<std::int64_t>(16, nz / 2), cuts = (nz + deep - 1) / deep;
#pragma omp parallel for collapse(2) schedule(static) if (n[0] * n[1] * n[2] > FEW)
    for (std::int64_t cut = 0; cut < cuts; ++cut)
        for (std::int64_t slab = 0; slab < slabs; ++slab)
            for (std::int64_t k = cut * deep; k < std::min(nz, (cut + 1) * deep); ++k)
                for (std::int64_t j = slab * high; j < std::min(ny, (slab + 1) * high); ++j)
                    op.row(Rows<T>(f, n, j, k), nx, (k * ny + j) * nx, out);
}

} // namespace

PEER(gradient_planes_f32) { planes<float, Gradient>(in, out, n, p); }
PEER(gradient_planes_f64) { planes<double, Gradient>(in, out, n, p); }
PEER(gradient_slabs_f32) { slabs<float, Gradient>(in, out, n, p); }
PEER(gradient_slabs_f64) { slabs<double, Gradient>(in, out, n, p); }
PEER(laplacian_planes_f32) { planes<float, Laplacian>(in, out, n, p); }
PEER(laplacian_planes_f64) { planes<double, Laplacian>(in, out, n, p); }
PEER(laplacian_slabs_f32) { slabs<float, Laplacian>(in, out, n, p); }
PEER(laplacian_slabs_f64) { slabs<double, Laplacian>(in, out, n, p); }
