// What the C++ with OpenMP in this folder has in common.
//
// Every function that the benchmark calls is a PEER: C linkage, and one list of
// parameters for all, so that one call path serves them. What `in`, `out`, `n`
// (extents and counts) and `p` (parameters) hold is said at each function. Arrays
// do not overlap.

#pragma once

#include <cstddef>
#include <cstdint>

#define PEER(name)                                                                    \
    extern "C" void halo_##name(const void *const *in, void *const *out,              \
                                const std::uint64_t *n, const double *p)

// Fewer elements than these are not worth waking other threads for.
constexpr std::size_t FEW = 16384;

#define UNUSED(parameter) static_cast<void>(parameter)
