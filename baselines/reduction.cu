// Parallel sums: the textbook's four kernels, each faster than the one before, for int and float,
// in CUDA C++.
//
// The order of the additions, the tiles, the grid and the block are the same as in the kernels of
// the same names in gpu-kernels/src/reduction. int values are added as unsigned, so that overflow
// wraps around.

// The most threads of a block, and the size of the static tiles in elements.
constexpr unsigned MAX_BLOCK = 1024;

// Elements that each thread of the unroll4 kernels adds before the block does.
constexpr unsigned UNROLL = 4;

__device__ float add(float a, float b) { return a + b; }
__device__ int add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }

// Adds the first len values of the block in place, one per thread, and writes the sum to
// partials[blockIdx.x].
//
// The lanes of the last warp wait for each other, because since Volta lanes do not run in lockstep.
template <typename T>
__device__ void add_up(T* x, unsigned len, T* partials)
{
    const unsigned tid = threadIdx.x;
    const unsigned block = blockDim.x;
    for (unsigned half = 512; half >= 64; half /= 2) {
        if (half < block) {
            if (tid < half && tid + half < len)
                x[tid] = add(x[tid], x[tid + half]);
            __syncthreads();
        }
    }
    if (tid < 32) {
        if (block > 32 && tid + 32 < len)
            x[tid] = add(x[tid], x[tid + 32]);
        for (unsigned half = 16; half >= 1; half /= 2) {
            __syncwarp();
            if (tid < half && tid + half < len)
                x[tid] = add(x[tid], x[tid + half]);
        }
    }
    if (tid == 0)
        partials[blockIdx.x] = x[0];
}

// Reduces in place in global memory, which destroys the values. Grid ceil(n / block).
template <typename T>
__device__ void sum_global(T* values, size_t n, T* partials)
{
    const size_t base = (size_t)blockIdx.x * blockDim.x;
    const size_t left = n - base;
    add_up(values + base, left < blockDim.x ? (unsigned)left : blockDim.x, partials);
}

// Reduces in shared memory. Grid ceil(n / block).
template <typename T>
__device__ void sum_shared(T* tile, const T* __restrict__ values, size_t n,
                           T* __restrict__ partials)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? values[i] : T(0);
    __syncthreads();
    add_up(tile, blockDim.x, partials);
}

// Reduces in shared memory, after each thread has added four elements at the distance of a block.
// Grid ceil(n / (4 * block)).
template <typename T>
__device__ void sum_unroll4(T* tile, const T* __restrict__ values, size_t n,
                            T* __restrict__ partials)
{
    const unsigned block = blockDim.x;
    const size_t i = (size_t)blockIdx.x * (UNROLL * block) + threadIdx.x;
    T sum = T(0);
    if ((size_t)(blockIdx.x + 1) * (UNROLL * block) <= n) {
        sum = add(add(add(values[i], values[i + block]), values[i + 2 * block]),
                  values[i + 3 * block]);
    } else {
        for (unsigned k = 0; k < UNROLL; ++k)
            if (i + k * block < n)
                sum = add(sum, values[i + k * block]);
    }
    tile[threadIdx.x] = sum;
    __syncthreads();
    add_up(tile, block, partials);
}

#define KERNELS(T, SUFFIX)                                                                    \
    extern "C" __global__ void reduction_global_##SUFFIX(T* values, unsigned long long n,     \
                                                         T* partials)                         \
    {                                                                                         \
        sum_global(values, n, partials);                                                      \
    }                                                                                         \
    extern "C" __global__ void reduction_shared_##SUFFIX(const T* values,                     \
                                                         unsigned long long n, T* partials)   \
    {                                                                                         \
        __shared__ T tile[MAX_BLOCK];                                                         \
        sum_shared(tile, values, n, partials);                                                \
    }                                                                                         \
    extern "C" __global__ void reduction_shared_unroll4_##SUFFIX(                             \
        const T* values, unsigned long long n, T* partials)                                   \
    {                                                                                         \
        __shared__ T tile[MAX_BLOCK];                                                         \
        sum_unroll4(tile, values, n, partials);                                               \
    }                                                                                         \
    extern "C" __global__ void reduction_shared_unroll4_dynamic_##SUFFIX(                     \
        const T* values, unsigned long long n, T* partials)                                   \
    {                                                                                         \
        extern __shared__ unsigned dynamic_tile[];                                            \
        sum_unroll4(reinterpret_cast<T*>(dynamic_tile), values, n, partials);                 \
    }

KERNELS(int, i32)
KERNELS(float, f32)
