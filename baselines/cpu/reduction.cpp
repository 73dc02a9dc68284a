// Reductions: sum, dot product, sum of squares, minimum, argmin.
//
// in: n elements, none of them NaN; two arrays for the dot product. out: one number, of the type of
// the elements, or a double where the list below says so. n: n.

#include "peer.h"

#include <algorithm>

namespace {

// Elements that are added in their own type before their sum is added in double. Longer blocks are
// not faster, and the error of this length is small.
constexpr std::int64_t BLOCK = 8192;

template <typename T> double sum_of(const T *__restrict x, std::int64_t count)
{
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i)
        sum += x[i];
    return double(sum);
}

// The products are made and added in S.
template <typename S, typename T>
double product_of(const T *__restrict x, const T *__restrict y, std::int64_t count)
{
    S sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i)
        sum += S(x[i]) * S(y[i]);
    return double(sum);
}

template <typename T> T least_of(const T *__restrict x, std::int64_t count)
{
    T least = x[0];
#pragma omp simd reduction(min : least)
    for (std::int64_t i = 0; i < count; ++i)
        least = x[i] < least ? x[i] : least;
    return least;
}

// The sum of of(first, length) over all blocks.
template <typename F> double over_blocks(std::int64_t count, F of)
{
    const std::int64_t blocks = (count + BLOCK - 1) / BLOCK;
    double total = 0;
#pragma omp parallel for schedule(static) reduction(+ : total) if (std::size_t(count) > 2 * FEW)
    for (std::int64_t block = 0; block < blocks; ++block)
        total += of(block * BLOCK, std::min(BLOCK, count - block * BLOCK));
    return total;
}

template <typename T> void sum(const void *const *in, void *const *out, const std::uint64_t *n)
{
    const T *x = static_cast<const T *>(in[0]);
    *static_cast<T *>(out[0]) =
        T(over_blocks(n[0], [=](auto first, auto length) { return sum_of(x + first, length); }));
}

template <typename T, typename S = T>
void dot(const void *const *in, void *const *out, const std::uint64_t *n)
{
    const T *x = static_cast<const T *>(in[0]), *y = static_cast<const T *>(in[1]);
    *static_cast<double *>(out[0]) = over_blocks(n[0], [=](auto first, auto length) {
        return product_of<S>(x + first, y + first, length);
    });
}

template <typename T, typename S = T>
void squares(const void *const *in, void *const *out, const std::uint64_t *n)
{
    const T *x = static_cast<const T *>(in[0]);
    *static_cast<double *>(out[0]) = over_blocks(n[0], [=](auto first, auto length) {
        return product_of<S>(x + first, x + first, length);
    });
}

template <typename T> void least(const void *const *in, void *const *out, const std::uint64_t *n)
{
    const T *__restrict x = static_cast<const T *>(in[0]);
    const std::int64_t count = n[0];
    T least = x[0];
#pragma omp parallel for simd schedule(static) reduction(min : least) if (n[0] > 2 * FEW)
    for (std::int64_t i = 0; i < count; ++i)
        least = x[i] < least ? x[i] : least;
    *static_cast<T *>(out[0]) = least;
}

// The argmin: finds the minimum of each block, then searches the first block that has the minimum
// of all.
template <typename T> void place(const void *const *in, void *const *out, const std::uint64_t *n)
{
    const T *x = static_cast<const T *>(in[0]);
    const std::int64_t count = n[0], blocks = (count + BLOCK - 1) / BLOCK;
    T least = x[0];
    std::int64_t where = 0;
#pragma omp parallel if (n[0] > 2 * FEW)
    {
        T mine = x[0];
        std::int64_t my_block = 0;
#pragma omp for schedule(static) nowait
        for (std::int64_t block = 0; block < blocks; ++block) {
            const std::int64_t first = block * BLOCK;
            const T found = least_of(x + first, std::min(BLOCK, count - first));
            if (found < mine)
                mine = found, my_block = block;
        }
#pragma omp critical(halo_place)
        if (mine < least || (mine == least && my_block < where))
            least = mine, where = my_block;
    }
    std::int64_t i = where * BLOCK;
    while (x[i] != least)
        ++i;
    *static_cast<double *>(out[0]) = double(i);
}

} // namespace

PEER(sum_blocked_f32) { UNUSED(p), sum<float>(in, out, n); }
PEER(sum_blocked_f64) { UNUSED(p), sum<double>(in, out, n); }
PEER(min_plain_f32) { UNUSED(p), least<float>(in, out, n); }
PEER(min_plain_f64) { UNUSED(p), least<double>(in, out, n); }
// The next ones return a double; `in_f64` also adds in it.
PEER(dot_blocked_f32) { UNUSED(p), dot<float>(in, out, n); }
PEER(dot_blocked_f64) { UNUSED(p), dot<double>(in, out, n); }
PEER(dot_in_f64_f32) { UNUSED(p), dot<float, double>(in, out, n); }
PEER(squares_blocked_f32) { UNUSED(p), squares<float>(in, out, n); }
PEER(squares_blocked_f64) { UNUSED(p), squares<double>(in, out, n); }
PEER(squares_in_f64_f32) { UNUSED(p), squares<float, double>(in, out, n); }
PEER(argmin_blocked_f32) { UNUSED(p), place<float>(in, out, n); }
PEER(argmin_blocked_f64) { UNUSED(p), place<double>(in, out, n); }
