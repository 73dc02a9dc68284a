// Measures the limits of the machine: copies, a read, multiply-adds. Also controls OpenMP's
// threads.

#ifndef __clang__
// Keeps the compiler from turning copy loops into memcpy, whose method depends on the size.
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif

#include "peer.h"

#include <cstring>
#include <omp.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

// The width of the widest vectors that the compiler may use.
#if defined(__AVX512F__)
constexpr std::size_t BYTES = 64, CHAINS = 12;
#elif defined(__AVX__)
constexpr std::size_t BYTES = 32, CHAINS = 10;
#else
constexpr std::size_t BYTES = 16, CHAINS = 10;
#endif

typedef std::uint64_t Line __attribute__((vector_size(BYTES)));
typedef Line Unaligned __attribute__((aligned(8)));

// Multiply-adds in registers, with enough independent chains to hide their latency.
template <typename T> void multiply_adds(std::uint64_t rounds, double *result)
{
    typedef T Vector __attribute__((vector_size(BYTES)));
    double sum = 0, threads = 0;
#pragma omp parallel reduction(+ : sum, threads)
    {
        Vector chains[CHAINS];
        const Vector factor = Vector{} + T(0.9999), term = Vector{} + T(1e-4);
        for (std::size_t c = 0; c < CHAINS; ++c)
            chains[c] = Vector{} + T(c);
        for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
            for (std::size_t c = 0; c < CHAINS; ++c)
                chains[c] = chains[c] * factor + term;
        }
        for (std::size_t c = 0; c < CHAINS; ++c)
            for (std::size_t lane = 0; lane < BYTES / sizeof(T); ++lane)
                sum += double(chains[c][lane]);
        threads += 1;
    }
    result[0] = threads * double(rounds) * double(CHAINS * (BYTES / sizeof(T)));
    result[1] = sum;
}

} // namespace

// Sets the number of threads to n[0].
PEER(threads)
{
    UNUSED(in), UNUSED(out), UNUSED(p);
    omp_set_dynamic(0);
    omp_set_num_threads(int(n[0]));
}

// Starts the threads, which then wait for work.
PEER(wake)
{
    UNUSED(in), UNUSED(out), UNUSED(n), UNUSED(p);
#pragma omp parallel
    {
#pragma omp barrier
    }
}

// Ends the threads, so that none of them spins while other code is timed.
PEER(rest)
{
    UNUSED(in), UNUSED(out), UNUSED(n), UNUSED(p);
    omp_pause_resource_all(omp_pause_soft);
}

// Copies n[0] elements of 8 bytes from in[0] to out[0] with ordinary stores.
PEER(copy)
{
    UNUSED(p);
    const char *from = static_cast<const char *>(in[0]);
    char *to = static_cast<char *>(out[0]);
    const std::int64_t lines = std::int64_t(8 * n[0] / BYTES);
#pragma omp parallel for schedule(static) if (std::size_t(lines) * BYTES > 8 * FEW)
    for (std::int64_t line = 0; line < lines; ++line)
        *reinterpret_cast<Unaligned *>(to + line * BYTES) =
            *reinterpret_cast<const Unaligned *>(from + line * BYTES);
    std::memcpy(to + lines * BYTES, from + lines * BYTES, 8 * n[0] - lines * BYTES);
}

#if defined(__x86_64__)
// The same with non-temporal stores.
PEER(streamed_copy)
{
    UNUSED(p);
    const char *from = static_cast<const char *>(in[0]);
    char *to = static_cast<char *>(out[0]);
    const std::size_t bytes = 8 * n[0];
    // memcpy copies the bytes before the first whole line of `to` and after the last.
    const std::size_t ahead = (BYTES - reinterpret_cast<std::uintptr_t>(to) % BYTES) % BYTES;
    const std::size_t head = ahead < bytes ? ahead : bytes;
    const std::int64_t lines = std::int64_t((bytes - head) / BYTES);
    std::memcpy(to, from, head);
#pragma omp parallel if (bytes > 8 * FEW)
    {
#pragma omp for schedule(static)
        for (std::int64_t line = 0; line < lines; ++line) {
            const char *source = from + head + line * BYTES;
            char *target = to + head + line * BYTES;
#if defined(__AVX512F__)
            _mm512_stream_si512(reinterpret_cast<__m512i *>(target), _mm512_loadu_si512(source));
#elif defined(__AVX__)
            _mm256_stream_si256(reinterpret_cast<__m256i *>(target),
                                _mm256_loadu_si256(reinterpret_cast<const __m256i *>(source)));
#else
            _mm_stream_si128(reinterpret_cast<__m128i *>(target),
                             _mm_loadu_si128(reinterpret_cast<const __m128i *>(source)));
#endif
        }
        _mm_sfence();
    }
    const std::size_t done = head + std::size_t(lines) * BYTES;
    std::memcpy(to + done, from + done, bytes - done);
}
#endif

// Reads n[0] elements of 8 bytes of in[0]; out[0][0] is their sum.
PEER(read)
{
    UNUSED(p);
    const std::uint64_t *__restrict x = static_cast<const std::uint64_t *>(in[0]);
    const std::int64_t count = std::int64_t(n[0]);
    std::uint64_t sum = 0;
#pragma omp parallel for simd reduction(+ : sum) schedule(static) if (n[0] > FEW)
    for (std::int64_t i = 0; i < count; ++i)
        sum += x[i];
    *static_cast<std::uint64_t *>(out[0]) = sum;
}

// n[0] rounds of multiply-adds. out[0] receives the number of multiply-adds, counted per lane, and
// a sum.
PEER(multiply_adds_f32)
{
    UNUSED(in), UNUSED(p);
    multiply_adds<float>(n[0], static_cast<double *>(out[0]));
}

PEER(multiply_adds_f64)
{
    UNUSED(in), UNUSED(p);
    multiply_adds<double>(n[0], static_cast<double *>(out[0]));
}
