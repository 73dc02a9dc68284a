// What the C++ sources with OpenMP in this folder share.
//
// Every function that the benchmark calls is a PEER: it has C linkage and the same parameters as
// the others, so that the benchmark calls all in the same way. Each file documents its `in`, `out`,
// `n` (extents and counts) and `p` (parameters). Arrays do not overlap.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#define PEER(name)                                                                    \
    extern "C" void halo_##name(const void *const *in, void *const *out,              \
                                const std::uint64_t *n, const double *p)

// With fewer elements than this, waking other threads does not pay.
constexpr std::size_t FEW = 16384;

#define UNUSED(parameter) static_cast<void>(parameter)

// Calls row(s, j, k) for each of n[3] steps s, one after the other, and each row j of each plane k.
// Each thread goes through its slabs of `high` rows plane by plane; if `high` is 0, a slab is a
// whole plane.
template <typename Row> void steps_in_slabs(const std::uint64_t *n, std::int64_t high, Row row)
{
    const std::int64_t ny = n[1], nz = n[2], count = n[3];
    if (high == 0)
        high = ny;
    const std::int64_t slabs = (ny + high - 1) / high;
    // Also cuts slabs along z, so that there is work for all threads if there are few slabs.
    const std::int64_t deep = high == ny ? 1 : std::max<std::int64_t>(16, nz / 2);
    const std::int64_t cuts = (nz + deep - 1) / deep;
#pragma omp parallel if (n[0] * n[1] * n[2] > FEW)
    for (std::int64_t s = 0; s < count; ++s) {
#pragma omp for collapse(2) schedule(static)
        for (std::int64_t cut = 0; cut < cuts; ++cut)
            for (std::int64_t slab = 0; slab < slabs; ++slab)
                for (std::int64_t k = cut * deep; k < std::min(nz, (cut + 1) * deep); ++k)
                    for (std::int64_t j = slab * high; j < std::min(ny, (slab + 1) * high); ++j)
                        row(s, j, k);
    }
}
