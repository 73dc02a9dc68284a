// One Jacobi iteration of the 2-D heat equation: the textbook's five kernels in
// CUDA C++.
//
// The equation, the tiles, the grid and the block are the same as in the kernels of the same names
// in gpu-kernels/src/heat2d. Three additions and a product in the order of the CPU port give its
// bits; the compiler can contract nothing here.

// Threads of a block along x, and along y.
constexpr unsigned BLOCK = 16;

// Points per axis that a block of the overlapping kernel writes.
constexpr unsigned OVERLAP_STEP = BLOCK - 2;

// Points per axis of the tile with halo, and the loads per thread and axis.
constexpr unsigned HALO_TILE = BLOCK + 2;
constexpr unsigned CELLS = HALO_TILE * HALO_TILE;
constexpr unsigned ROUNDS = (CELLS + BLOCK * BLOCK - 1) / (BLOCK * BLOCK);

__device__ float average(float east, float west, float north, float south)
{
    return ((east + west) + (north + south)) * 0.25f;
}

__device__ bool is_inner(unsigned p, unsigned n) { return p >= 1 && p < n - 1; }

// Blocks of 16 x 16 threads, one per point: grid (ceil(nx / 16), ceil(ny / 16)).
extern "C" __global__ void heat2d_global(const float* __restrict__ old, float* __restrict__ next,
                                         unsigned nx, unsigned ny)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    const unsigned j = blockIdx.y * BLOCK + threadIdx.y;
    if (is_inner(i, nx) && is_inner(j, ny)) {
        const size_t at = (size_t)j * nx + i;
        next[at] = average(old[at + 1], old[at - 1], old[at + nx], old[at - nx]);
    }
}

// Blocks of 16 x 16 threads, one per point: grid (ceil(nx / 16), ceil(ny / 16)).
extern "C" __global__ void heat2d_shared_core(const float* __restrict__ old,
                                              float* __restrict__ next, unsigned nx, unsigned ny)
{
    __shared__ float tile[BLOCK][BLOCK];
    const unsigned tx = threadIdx.x, ty = threadIdx.y;
    const unsigned i = blockIdx.x * BLOCK + tx;
    const unsigned j = blockIdx.y * BLOCK + ty;
    const size_t at = (size_t)j * nx + i;

    if (i < nx && j < ny)
        tile[ty][tx] = old[at];
    __syncthreads();

    if (is_inner(i, nx) && is_inner(j, ny)) {
        const float east = tx != BLOCK - 1 ? tile[ty][tx + 1] : old[at + 1];
        const float west = tx != 0 ? tile[ty][tx - 1] : old[at - 1];
        const float north = ty != BLOCK - 1 ? tile[ty + 1][tx] : old[at + nx];
        const float south = ty != 0 ? tile[ty - 1][tx] : old[at - nx];
        next[at] = average(east, west, north, south);
    }
}

// Blocks of 16 x 16 threads that write 14 x 14 points: grid
// (ceil((nx - 2) / 14), ceil((ny - 2) / 14)).
extern "C" __global__ void heat2d_shared_overlap(const float* __restrict__ old,
                                                 float* __restrict__ next, unsigned nx, unsigned ny)
{
    __shared__ float tile[BLOCK][BLOCK];
    const unsigned tx = threadIdx.x, ty = threadIdx.y;
    const unsigned i = blockIdx.x * OVERLAP_STEP + tx;
    const unsigned j = blockIdx.y * OVERLAP_STEP + ty;
    const size_t at = (size_t)j * nx + i;

    if (i < nx && j < ny)
        tile[ty][tx] = old[at];
    __syncthreads();

    if (is_inner(tx, BLOCK) && is_inner(ty, BLOCK) && i < nx - 1 && j < ny - 1)
        next[at] = average(tile[ty][tx + 1], tile[ty][tx - 1], tile[ty + 1][tx], tile[ty - 1][tx]);
}

// Blocks of 16 x 16 threads that load 18 x 18 points: grid
// (ceil((nx - 2) / 16), ceil((ny - 2) / 16)).
extern "C" __global__ void heat2d_shared_halo(const float* __restrict__ old,
                                              float* __restrict__ next, unsigned nx, unsigned ny)
{
    __shared__ float tile[HALO_TILE][HALO_TILE];
    const unsigned tx = threadIdx.x, ty = threadIdx.y;
    const unsigned x0 = blockIdx.x * BLOCK, y0 = blockIdx.y * BLOCK;

    for (unsigned round = 0; round < ROUNDS; ++round) {
        const unsigned cell = round * BLOCK * BLOCK + ty * BLOCK + tx;
        const unsigned i = x0 + cell % HALO_TILE;
        const unsigned j = y0 + cell / HALO_TILE;
        if (cell < CELLS && i < nx && j < ny)
            tile[cell / HALO_TILE][cell % HALO_TILE] = old[(size_t)j * nx + i];
    }
    __syncthreads();

    const unsigned i = x0 + 1 + tx, j = y0 + 1 + ty;
    if (i < nx - 1 && j < ny - 1)
        next[(size_t)j * nx + i] = average(tile[ty + 1][tx + 2], tile[ty + 1][tx],
                                           tile[ty + 2][tx + 1], tile[ty][tx + 1]);
}

// As heat2d_global, but reads through a texture object; the rows of next have nx elements and start
// pitch elements apart.
extern "C" __global__ void heat2d_texture(cudaTextureObject_t old, float* __restrict__ next,
                                          unsigned nx, unsigned ny, unsigned pitch)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    const unsigned j = blockIdx.y * BLOCK + threadIdx.y;
    if (is_inner(i, nx) && is_inner(j, ny)) {
        const float x = i + 0.5f, y = j + 0.5f;
        next[(size_t)j * pitch + i] =
            average(tex2D<float>(old, x + 1, y), tex2D<float>(old, x - 1, y),
                    tex2D<float>(old, x, y + 1), tex2D<float>(old, x, y - 1));
    }
}
