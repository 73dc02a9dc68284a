// Accelerations and potentials of bodies under their own gravity.
//
// in: n bodies of four numbers (x, y, z, mass). out: the acceleration of each body (three numbers),
// or its potential. n: n. p: the square of the softening length, which is not 0.

#include "peer.h"

#include <cmath>
#include <vector>

namespace {

// The coordinates and masses of the bodies, as a structure of arrays.
template <typename T> struct Arrays {
    std::vector<T> x, y, z, mass;

    void fill(const T *bodies, std::size_t n)
    {
        x.resize(n), y.resize(n), z.resize(n), mass.resize(n);
        for (std::size_t i = 0; i < n; ++i) {
            x[i] = bodies[4 * i];
            y[i] = bodies[4 * i + 1];
            z[i] = bodies[4 * i + 2];
            mass[i] = bodies[4 * i + 3];
        }
    }
};

// The accelerations of WIDTH bodies from `i` on, computed in T and summed in S.
template <typename T, typename S, int WIDTH>
void attract(const Arrays<T> &arrays, std::int64_t n, std::int64_t i, T softening, S *out)
{
    const T *__restrict x = arrays.x.data();
    const T *__restrict y = arrays.y.data();
    const T *__restrict z = arrays.z.data();
    const T *__restrict mass = arrays.mass.data();
    T xi[WIDTH], yi[WIDTH], zi[WIDTH];
    S ax[WIDTH] = {}, ay[WIDTH] = {}, az[WIDTH] = {};
    for (int k = 0; k < WIDTH; ++k)
        xi[k] = x[i + k], yi[k] = y[i + k], zi[k] = z[i + k];
#pragma omp simd reduction(+ : ax, ay, az)
    for (std::int64_t j = 0; j < n; ++j) {
#pragma GCC unroll 8
        for (int k = 0; k < WIDTH; ++k) {
            const T dx = x[j] - xi[k], dy = y[j] - yi[k], dz = z[j] - zi[k];
            const T square = softening + dx * dx + dy * dy + dz * dz;
            const T inverse = T(1) / std::sqrt(square);
            const T factor = mass[j] * inverse * inverse * inverse;
            ax[k] += S(dx * factor);
            ay[k] += S(dy * factor);
            az[k] += S(dz * factor);
        }
    }
    for (int k = 0; k < WIDTH; ++k) {
        out[3 * (i + k)] = ax[k];
        out[3 * (i + k) + 1] = ay[k];
        out[3 * (i + k) + 2] = az[k];
    }
}

// The same for one body. Every compiler keeps these sums in registers.
template <typename T, typename S>
void attract_one(const Arrays<T> &arrays, std::int64_t n, std::int64_t i, T softening, S *out)
{
    const T *__restrict x = arrays.x.data();
    const T *__restrict y = arrays.y.data();
    const T *__restrict z = arrays.z.data();
    const T *__restrict mass = arrays.mass.data();
    const T xi = x[i], yi = y[i], zi = z[i];
    S ax = 0, ay = 0, az = 0;
#pragma omp simd reduction(+ : ax, ay, az)
    for (std::int64_t j = 0; j < n; ++j) {
        const T dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi;
        const T inverse = T(1) / std::sqrt(softening + dx * dx + dy * dy + dz * dz);
        const T factor = mass[j] * inverse * inverse * inverse;
        ax += S(dx * factor);
        ay += S(dy * factor);
        az += S(dz * factor);
    }
    out[3 * i] = ax, out[3 * i + 1] = ay, out[3 * i + 2] = az;
}

template <typename T, typename S>
void one_by_one(const void *const *in, void *const *out, const std::uint64_t *n, const double *p)
{
    static Arrays<T> arrays;
    arrays.fill(static_cast<const T *>(in[0]), n[0]);
    const std::int64_t count = n[0];
    S *result = static_cast<S *>(out[0]);
#pragma omp parallel for schedule(static) if (n[0] * n[0] > FEW)
    for (std::int64_t i = 0; i < count; ++i)
        attract_one<T, S>(arrays, count, i, T(p[0]), result);
}

// Four bodies at a time: each loaded body is used for four interactions.
template <typename T, typename S>
void by_fours(const void *const *in, void *const *out, const std::uint64_t *n, const double *p)
{
    constexpr int WIDTH = 4;
    static Arrays<T> arrays;
    arrays.fill(static_cast<const T *>(in[0]), n[0]);
    const std::int64_t count = n[0], groups = count / WIDTH;
    S *result = static_cast<S *>(out[0]);
#pragma omp parallel for schedule(static) if (n[0] * n[0] > FEW)
    for (std::int64_t group = 0; group < groups; ++group)
        attract<T, S, WIDTH>(arrays, count, group * WIDTH, T(p[0]), result);
    for (std::int64_t i = groups * WIDTH; i < count; ++i)
        attract_one<T, S>(arrays, count, i, T(p[0]), result);
}

// One body per lane, so no sum across lanes is needed.
template <typename T, typename S>
void in_lanes(const void *const *in, void *const *out, const std::uint64_t *n, const double *p)
{
    constexpr int LANES = 64 / sizeof(T);
    static Arrays<T> arrays;
    arrays.fill(static_cast<const T *>(in[0]), n[0]);
    const T *__restrict x = arrays.x.data();
    const T *__restrict y = arrays.y.data();
    const T *__restrict z = arrays.z.data();
    const T *__restrict mass = arrays.mass.data();
    const std::int64_t count = n[0], groups = count / LANES;
    const T softening = T(p[0]);
    S *result = static_cast<S *>(out[0]);
#pragma omp parallel for schedule(static) if (n[0] * n[0] > FEW)
    for (std::int64_t group = 0; group < groups; ++group) {
        const std::int64_t first = group * LANES;
        S ax[LANES] = {}, ay[LANES] = {}, az[LANES] = {};
        for (std::int64_t j = 0; j < count; ++j) {
            const T xj = x[j], yj = y[j], zj = z[j], mj = mass[j];
#pragma omp simd
            for (int lane = 0; lane < LANES; ++lane) {
                const T dx = xj - x[first + lane], dy = yj - y[first + lane];
                const T dz = zj - z[first + lane];
                const T inverse = T(1) / std::sqrt(softening + dx * dx + dy * dy + dz * dz);
                const T factor = mj * inverse * inverse * inverse;
                ax[lane] += S(dx * factor);
                ay[lane] += S(dy * factor);
                az[lane] += S(dz * factor);
            }
        }
        for (int lane = 0; lane < LANES; ++lane) {
            result[3 * (first + lane)] = ax[lane];
            result[3 * (first + lane) + 1] = ay[lane];
            result[3 * (first + lane) + 2] = az[lane];
        }
    }
    for (std::int64_t i = groups * LANES; i < count; ++i)
        attract_one<T, S>(arrays, count, i, softening, result);
}

// The potential at each body due to all others: the term j = i is left out.
template <typename T>
void potentials(const void *const *in, void *const *out, const std::uint64_t *n, const double *p)
{
    static Arrays<T> arrays;
    arrays.fill(static_cast<const T *>(in[0]), n[0]);
    const T *__restrict x = arrays.x.data();
    const T *__restrict y = arrays.y.data();
    const T *__restrict z = arrays.z.data();
    const T *__restrict mass = arrays.mass.data();
    const std::int64_t count = n[0];
    const T softening = T(p[0]);
    double *result = static_cast<double *>(out[0]);
#pragma omp parallel for schedule(static) if (n[0] * n[0] > FEW)
    for (std::int64_t i = 0; i < count; ++i) {
        const T xi = x[i], yi = y[i], zi = z[i];
        const auto sum_of = [=](std::int64_t from, std::int64_t to) {
            T sum = 0;
#pragma omp simd reduction(+ : sum)
            for (std::int64_t j = from; j < to; ++j) {
                const T dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi;
                sum += mass[j] / std::sqrt(softening + dx * dx + dy * dy + dz * dz);
            }
            return double(sum);
        };
        result[i] = -(sum_of(0, i) + sum_of(i + 1, count));
    }
}

} // namespace

PEER(nbody_plain_f32) { one_by_one<float, float>(in, out, n, p); }
PEER(nbody_plain_f64) { one_by_one<double, double>(in, out, n, p); }
PEER(nbody_fours_f32) { by_fours<float, float>(in, out, n, p); }
PEER(nbody_fours_f64) { by_fours<double, double>(in, out, n, p); }
PEER(nbody_lanes_f32) { in_lanes<float, float>(in, out, n, p); }
PEER(nbody_lanes_f64) { in_lanes<double, double>(in, out, n, p); }
// Bodies in f32, sums in f64.
PEER(nbody_mixed_plain_f32) { one_by_one<float, double>(in, out, n, p); }
PEER(nbody_mixed_lanes_f32) { in_lanes<float, double>(in, out, n, p); }
// Results in f64.
PEER(nbody_potentials_f32) { potentials<float>(in, out, n, p); }
PEER(nbody_potentials_f64) { potentials<double>(in, out, n, p); }
