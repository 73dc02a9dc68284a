// First derivatives of a periodic 3-D field by 8th-order central differences: the textbook's six
// kernels in CUDA C++.
//
// The equation, the tiles, the grid and the block are the same as in the kernels of the same names
// in gpu-kernels/src/derivative3d. Multiply-adds are written as fmaf in the order of the CPU port,
// so the results have its bits.

// The radius of the stencil in points, which is the width of the halo.
constexpr int RADIUS = 4;

// The number of pencils for which a block has threads, whatever the size of its tile.
constexpr int PENCILS_IN_FLIGHT = 4;

// Weights divided by the grid spacing: [4 * axis + m - 1] is the weight of the neighbours m points
// away along axis (x = 0, y = 1, z = 2). The host sets them.
__constant__ float DERIVATIVE3D_WEIGHTS[3 * RADIUS];

extern __shared__ float tile[];

// The stencil at center; neighbouring points are stride elements apart.
template <int AXIS>
__device__ float stencil(const float* center, int stride)
{
    const float* weight = DERIVATIVE3D_WEIGHTS + RADIUS * AXIS;
    float sum = weight[0] * (center[stride] - center[-stride]);
    sum = fmaf(center[2 * stride] - center[-2 * stride], weight[1], sum);
    sum = fmaf(center[3 * stride] - center[-3 * stride], weight[2], sum);
    return fmaf(center[4 * stride] - center[-4 * stride], weight[3], sum);
}

// Computes one tile of PENCILS rows along x.
template <int PENCILS>
__device__ void x_pencils(const float* __restrict__ f, float* __restrict__ df, unsigned nx,
                          unsigned ny, unsigned overlap)
{
    constexpr int POINTS = PENCILS / PENCILS_IN_FLIGHT;
    const unsigned row_len = nx + 2 * RADIUS;
    const unsigned i = threadIdx.x;
    const unsigned first = threadIdx.y;
    const unsigned first_row = blockIdx.y * ny + blockIdx.x * PENCILS + first;
    const size_t global = (size_t)first_row * nx + i;
    const size_t global_step = (size_t)PENCILS_IN_FLIGHT * nx;

    for (int n = 0; n < POINTS; ++n)
        tile[(first + n * PENCILS_IN_FLIGHT) * row_len + i + RADIUS] = f[global + n * global_step];
    __syncthreads();

    // The tile contains whole pencils, so it also contains their periodic images.
    if (i < RADIUS) {
        for (int n = 0; n < POINTS; ++n) {
            float* row = tile + (first + n * PENCILS_IN_FLIGHT) * row_len;
            row[i] = row[nx - overlap + i];
            row[nx + RADIUS + i] = row[RADIUS + overlap + i];
        }
    }
    __syncthreads();

    for (int n = 0; n < POINTS; ++n) {
        const float* center = tile + (first + n * PENCILS_IN_FLIGHT) * row_len + i + RADIUS;
        df[global + n * global_step] = stencil<0>(center, 1);
    }
}

// Computes one tile of PENCILS columns, side by side in x, whose points are axis_stride elements
// apart.
template <int AXIS, int PENCILS>
__device__ void column_pencils(const float* __restrict__ f, float* __restrict__ df, size_t origin,
                               size_t axis_stride, unsigned len, unsigned overlap)
{
    constexpr int POINTS = PENCILS / PENCILS_IN_FLIGHT;
    const unsigned column = threadIdx.x;
    const unsigned first = threadIdx.y;
    const unsigned step = blockDim.y;
    const size_t global = origin + column + first * axis_stride;
    const size_t global_step = step * axis_stride;

    for (int n = 0; n < POINTS; ++n)
        tile[(first + n * step + RADIUS) * PENCILS + column] = f[global + n * global_step];
    __syncthreads();

    // The tile contains whole pencils, so it also contains their periodic images.
    for (unsigned h = first; h < RADIUS; h += step) {
        tile[h * PENCILS + column] = tile[(len - overlap + h) * PENCILS + column];
        tile[(len + RADIUS + h) * PENCILS + column] = tile[(RADIUS + overlap + h) * PENCILS + column];
    }
    __syncthreads();

    for (int n = 0; n < POINTS; ++n) {
        const float* center = tile + (first + n * step + RADIUS) * PENCILS + column;
        df[global + n * global_step] = stencil<AXIS>(center, PENCILS);
    }
}

template <int PENCILS>
__device__ void y_pencils(const float* __restrict__ f, float* __restrict__ df, unsigned nx,
                          unsigned ny, unsigned overlap)
{
    const size_t plane = (size_t)nx * ny;
    const size_t origin = blockIdx.y * plane + (size_t)blockIdx.x * PENCILS;
    column_pencils<1, PENCILS>(f, df, origin, nx, ny, overlap);
}

template <int PENCILS>
__device__ void z_pencils(const float* __restrict__ f, float* __restrict__ df, unsigned nx,
                          unsigned ny, unsigned nz, unsigned overlap)
{
    const size_t plane = (size_t)nx * ny;
    const size_t origin = (size_t)blockIdx.y * nx + (size_t)blockIdx.x * PENCILS;
    column_pencils<2, PENCILS>(f, df, origin, plane, nz, overlap);
}

// Grid (ny / 4, nz), block (nx, 4), 4 * (nx + 8) floats of shared memory.
extern "C" __global__ void derivative3d_x_pencil4(const float* f, float* df, unsigned nx,
                                                  unsigned ny, unsigned overlap)
{
    x_pencils<4>(f, df, nx, ny, overlap);
}

// Grid (ny / 32, nz), block (nx, 4), 32 * (nx + 8) floats of shared memory.
extern "C" __global__ void derivative3d_x_pencil32(const float* f, float* df, unsigned nx,
                                                   unsigned ny, unsigned overlap)
{
    x_pencils<32>(f, df, nx, ny, overlap);
}

// Grid (nx / 4, nz), block (4, ny), 4 * (ny + 8) floats of shared memory.
extern "C" __global__ void derivative3d_y_pencil4(const float* f, float* df, unsigned nx,
                                                  unsigned ny, unsigned overlap)
{
    y_pencils<4>(f, df, nx, ny, overlap);
}

// Grid (nx / 32, nz), block (32, ny / 8), 32 * (ny + 8) floats of shared memory.
extern "C" __global__ void derivative3d_y_pencil32(const float* f, float* df, unsigned nx,
                                                   unsigned ny, unsigned overlap)
{
    y_pencils<32>(f, df, nx, ny, overlap);
}

// Grid (nx / 4, ny), block (4, nz), 4 * (nz + 8) floats of shared memory.
extern "C" __global__ void derivative3d_z_pencil4(const float* f, float* df, unsigned nx,
                                                  unsigned ny, unsigned nz, unsigned overlap)
{
    z_pencils<4>(f, df, nx, ny, nz, overlap);
}

// Grid (nx / 32, ny), block (32, nz / 8), 32 * (nz + 8) floats of shared memory.
extern "C" __global__ void derivative3d_z_pencil32(const float* f, float* df, unsigned nx,
                                                   unsigned ny, unsigned nz, unsigned overlap)
{
    z_pencils<32>(f, df, nx, ny, nz, overlap);
}
