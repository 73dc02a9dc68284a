// A nine-point antisymmetric stencil on a line: the textbook's two kernels in
// CUDA C++.
//
// The equation, the tile, the grid and the block are the same as in the kernels of the same names
// in gpu-kernels/src/stencil1d. Multiply-adds are written as fmaf in the order of the CPU port, so
// the results have its bits.

// The radius of the stencil in elements, which is the width of the halo.
constexpr unsigned RADIUS = 4;

// [m - 1] is the coefficient of the neighbours m elements away. The host sets them.
__constant__ float STENCIL1D_COEFFICIENTS[RADIUS];

extern __shared__ float tile[];

__device__ void stencil1d(const float* __restrict__ input, float* __restrict__ output, size_t n,
                          float c1, float c2, float c3, float c4)
{
    const unsigned t = threadIdx.x;
    const unsigned block = blockDim.x;
    const size_t i = (size_t)blockIdx.x * block + t;

    if (i < n)
        tile[RADIUS + t] = input[i];
    if (t < RADIUS) {
        if (i >= RADIUS)
            tile[t] = input[i - RADIUS];
        if (i + block < n)
            tile[RADIUS + block + t] = input[i + block];
    }
    __syncthreads();

    if (i >= RADIUS && i + RADIUS < n) {
        const float* center = tile + RADIUS + t;
        float sum = c1 * (center[1] - center[-1]);
        sum = fmaf(center[2] - center[-2], c2, sum);
        sum = fmaf(center[3] - center[-3], c3, sum);
        sum = fmaf(center[4] - center[-4], c4, sum);
        output[i] = sum;
    }
}

// Grid ceil(n / block), any block of at least 4 threads, block + 8 floats of
// shared memory.
extern "C" __global__ void stencil1d_constant(const float* input, float* output,
                                              unsigned long long n)
{
    stencil1d(input, output, n, STENCIL1D_COEFFICIENTS[0], STENCIL1D_COEFFICIENTS[1],
              STENCIL1D_COEFFICIENTS[2], STENCIL1D_COEFFICIENTS[3]);
}

// The same with the coefficients in global memory, read through the read-only data cache.
extern "C" __global__ void stencil1d_readonly(const float* input, float* output,
                                              const float* coefficients, unsigned long long n)
{
    stencil1d(input, output, n, __ldg(coefficients), __ldg(coefficients + 1),
              __ldg(coefficients + 2), __ldg(coefficients + 3));
}
