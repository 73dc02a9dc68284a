// Waves in a periodic box, of 2nd order in time and of 8th order in space.
//
// in: (c Δt / h)² at each point, x fastest. out: the field, and the field one step earlier. Each
// step overwrites the older one, so after s steps field s % 2 is the result. n: nx, ny, nz, s. p:
// the weight of the point itself, then the weights of its neighbours along x, along y and along z,
// the nearest first.

#include "peer.h"

namespace {

constexpr int RADIUS = 4;

// `place`, at most RADIUS beyond the ends, wrapped into a periodic axis of n points. A division for
// each value at the ends of rows would take several times as long as the rows.
inline std::int64_t around(std::int64_t place, std::int64_t n)
{
    if (n < RADIUS) {
        place %= n;
        return place < 0 ? place + n : place;
    }
    return place < 0 ? place + n : place >= n ? place - n : place;
}

template <typename T> struct Step {
    T own, cx[RADIUS], cy[RADIUS], cz[RADIUS];

    explicit Step(const double *p) : own(T(p[0]))
    {
        for (int m = 0; m < RADIUS; ++m)
            cx[m] = T(p[1 + m]), cy[m] = T(p[1 + RADIUS + m]), cz[m] = T(p[1 + 2 * RADIUS + m]);
    }

    // Updates row j of plane k, and overwrites the row of the earlier step.
    void row(const T *now, T *past, const T *courant, const std::uint64_t *n, std::int64_t j,
             std::int64_t k) const
    {
        const std::int64_t nx = n[0], ny = n[1], nz = n[2];
        const auto at = [=](std::int64_t j, std::int64_t k) {
            return now + (around(k, nz) * ny + around(j, ny)) * nx;
        };
        const T *__restrict u = at(j, k);
        const T *__restrict s1 = at(j - 1, k), *__restrict n1 = at(j + 1, k);
        const T *__restrict s2 = at(j - 2, k), *__restrict n2 = at(j + 2, k);
        const T *__restrict s3 = at(j - 3, k), *__restrict n3 = at(j + 3, k);
        const T *__restrict s4 = at(j - 4, k), *__restrict n4 = at(j + 4, k);
        const T *__restrict b1 = at(j, k - 1), *__restrict a1 = at(j, k + 1);
        const T *__restrict b2 = at(j, k - 2), *__restrict a2 = at(j, k + 2);
        const T *__restrict b3 = at(j, k - 3), *__restrict a3 = at(j, k + 3);
        const T *__restrict b4 = at(j, k - 4), *__restrict a4 = at(j, k + 4);
        T *__restrict result = past + (k * ny + j) * nx;
        const T *__restrict c2 = courant + (k * ny + j) * nx;
        const Step c = *this;
        // The new value at point i, given the sum along x.
        const auto point = [=](std::int64_t i, T along_x) {
            const T sum = c.own * u[i] + along_x + c.cy[0] * (n1[i] + s1[i]) +
                          c.cy[1] * (n2[i] + s2[i]) + c.cy[2] * (n3[i] + s3[i]) +
                          c.cy[3] * (n4[i] + s4[i]) + c.cz[0] * (a1[i] + b1[i]) +
                          c.cz[1] * (a2[i] + b2[i]) + c.cz[2] * (a3[i] + b3[i]) +
                          c.cz[3] * (a4[i] + b4[i]);
            return (2 * u[i] - result[i]) + c2[i] * sum;
        };
#pragma omp simd
        for (std::int64_t i = RADIUS; i < nx - RADIUS; ++i)
            result[i] = point(i, c.cx[0] * (u[i + 1] + u[i - 1]) + c.cx[1] * (u[i + 2] + u[i - 2]) +
                                     c.cx[2] * (u[i + 3] + u[i - 3]) +
                                     c.cx[3] * (u[i + 4] + u[i - 4]));
        const auto end = [=](std::int64_t i) {
            T sum = 0;
            for (int m = 1; m <= RADIUS; ++m)
                sum += c.cx[m - 1] * (u[around(i + m, nx)] + u[around(i - m, nx)]);
            result[i] = point(i, sum);
        };
        const std::int64_t low = std::min<std::int64_t>(RADIUS, nx);
        for (std::int64_t i = 0; i < low; ++i)
            end(i);
        for (std::int64_t i = std::max(low, nx - RADIUS); i < nx; ++i)
            end(i);
    }
};

template <typename T>
void steps(const void *const *in, void *const *out, const std::uint64_t *n, const double *p,
           std::int64_t high)
{
    const Step<T> step(p);
    const T *courant = static_cast<const T *>(in[0]);
    steps_in_slabs(n, high, [=](std::int64_t s, std::int64_t j, std::int64_t k) {
        step.row(static_cast<const T *>(out[s % 2]), static_cast<T *>(out[(s + 1) % 2]), courant,
                 n, j, k);
    });
}

} // namespace

PEER(wave3d_planes_f32) { steps<float>(in, out, n, p, 0); }
PEER(wave3d_planes_f64) { steps<double>(in, out, n, p, 0); }
PEER(wave3d_slabs_f32) { steps<float>(in, out, n, p, 16); }
PEER(wave3d_slabs_f64) { steps<double>(in, out, n, p, 16); }
