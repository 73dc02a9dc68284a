// All-pairs gravity: the textbook's kernels in CUDA C++, and one in the style of
// the n-body example of the CUDA samples.
//
// The interaction, the tile, the grid and the block are the same as in the kernels of the same
// names in gpu-kernels/src/nbody. Like that example, they are compiled with -ftz=true, so that
// rsqrtf is one instruction, as in the Rust kernels.

// A body: a point with a mass, 16 bytes in float and 32 in double.
template <typename T>
struct __align__(16) Body {
    T x, y, z, mass;
};

// An acceleration: three packed numbers.
template <typename T>
struct Vector {
    T x, y, z;
};

// Interactions per turn of the inner loop of nbody_shared.
constexpr unsigned SHARED_UNROLL = 16;

__device__ float reciprocal_root(float x) { return rsqrtf(x); }
__device__ double reciprocal_root(double x) { return rsqrt(x); }

// The sum plus the acceleration that body causes at position.
template <typename T>
__device__ Vector<T> body_body(Vector<T> sum, Body<T> position, Body<T> body, T softening_squared)
{
    const T rx = body.x - position.x;
    const T ry = body.y - position.y;
    const T rz = body.z - position.z;
    const T distance_squared = fma(rz, rz, fma(ry, ry, fma(rx, rx, softening_squared)));
    const T inverse = reciprocal_root(distance_squared);
    const T s = (body.mass * inverse) * (inverse * inverse);
    return {fma(rx, s, sum.x), fma(ry, s, sum.y), fma(rz, s, sum.z)};
}

// Every thread reads every body from global memory, with UNROLL interactions per turn of the loop.
// Grid ceil(n / block), any block.
template <typename T, int UNROLL>
__device__ void aos(const Body<T>* __restrict__ bodies, unsigned n, T softening_squared,
                    Vector<T>* __restrict__ accelerations)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const Body<T> position = bodies[i];
    Vector<T> sum = {0, 0, 0};
#pragma unroll UNROLL
    for (unsigned j = 0; j < n; ++j)
        sum = body_body(sum, position, bodies[j], softening_squared);
    accelerations[i] = sum;
}

// Threads read bodies from a tile of one body per thread. Grid ceil(n / block), the block a
// multiple of 16, shared memory for one body per thread.
template <typename T>
__device__ void shared(const Body<T>* __restrict__ bodies, unsigned n, T softening_squared,
                       Vector<T>* __restrict__ accelerations)
{
    extern __shared__ __align__(16) unsigned char dynamic_tile[];
    Body<T>* tile = reinterpret_cast<Body<T>*>(dynamic_tile);
    const Body<T> nothing = {0, 0, 0, 0};
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const Body<T> position = i < n ? bodies[i] : nothing;
    Vector<T> sum = {0, 0, 0};
    for (unsigned start = 0; start < n; start += blockDim.x) {
        const unsigned j = start + threadIdx.x;
        tile[threadIdx.x] = j < n ? bodies[j] : nothing;
        __syncthreads();
        for (unsigned k = 0; k < blockDim.x; k += SHARED_UNROLL) {
#pragma unroll
            for (unsigned u = 0; u < SHARED_UNROLL; ++u)
                sum = body_body(sum, position, tile[k + u], softening_squared);
        }
        __syncthreads();
    }
    if (i < n)
        accelerations[i] = sum;
}

#define AOS(T, SUFFIX, UNROLL)                                                                \
    extern "C" __global__ void nbody_aos_unroll##UNROLL##_##SUFFIX(                           \
        const Body<T>* bodies, unsigned n, T softening_squared, Vector<T>* accelerations)     \
    {                                                                                         \
        aos<T, UNROLL>(bodies, n, softening_squared, accelerations);                          \
    }

#define KERNELS(T, SUFFIX)                                                                    \
    AOS(T, SUFFIX, 1)                                                                         \
    AOS(T, SUFFIX, 2)                                                                         \
    AOS(T, SUFFIX, 4)                                                                         \
    AOS(T, SUFFIX, 8)                                                                         \
    AOS(T, SUFFIX, 16)                                                                        \
    AOS(T, SUFFIX, 32)                                                                        \
    extern "C" __global__ void nbody_shared_##SUFFIX(                                         \
        const Body<T>* bodies, unsigned n, T softening_squared, Vector<T>* accelerations)     \
    {                                                                                         \
        shared(bodies, n, softening_squared, accelerations);                                  \
    }

KERNELS(float, f32)
KERNELS(double, f64)

// The same in the way of the n-body example, in float: the inner loop is unrolled 128 times, the
// compiler may contract products and sums, and the inverse distance is cubed before it is
// multiplied by the mass. There is no such kernel in gpu-kernels; parameters, grid, block and
// shared memory are the same as for nbody_shared_f32.
//
// After Nyland, Harris and Prins, "Fast N-Body Simulation with CUDA", GPU Gems 3,
// 2007, chapter 31.
extern "C" __global__ void nbody_sample_f32(const float4* __restrict__ bodies, unsigned n,
                                            float softening_squared,
                                            Vector<float>* __restrict__ accelerations)
{
    extern __shared__ float4 positions[];
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 nothing = make_float4(0, 0, 0, 0);
    const float4 own = i < n ? bodies[i] : nothing;
    float3 sum = make_float3(0, 0, 0);
    for (unsigned start = 0; start < n; start += blockDim.x) {
        const unsigned j = start + threadIdx.x;
        positions[threadIdx.x] = j < n ? bodies[j] : nothing;
        __syncthreads();
#pragma unroll 128
        for (unsigned k = 0; k < blockDim.x; ++k) {
            const float4 other = positions[k];
            const float x = other.x - own.x, y = other.y - own.y, z = other.z - own.z;
            const float inverse = rsqrtf(x * x + y * y + z * z + softening_squared);
            const float s = other.w * (inverse * inverse * inverse);
            sum.x += x * s;
            sum.y += y * s;
            sum.z += z * s;
        }
        __syncthreads();
    }
    if (i < n)
        accelerations[i] = {sum.x, sum.y, sum.z};
}
