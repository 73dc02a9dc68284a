// The kernel of kernels/src/lib.rs in CUDA C++, written by hand in two ways, for periodic fields
// whose rows are a whole number of float4s. With -fmad=false the order of the operations gives the
// bits of the Rust kernel.
//
//   nvcc -arch=sm_90 -O3 -fmad=false -cubin -o gray_scott.cubin cuda/gray_scott.cu

// own_kernel_kernels::Reaction.
struct Reaction {
    float diffusion_u, diffusion_v, feed, kill;
};

struct Row {
    float at[4];
};

__device__ Row load(const float* from)
{
    const float4 v = __ldg(reinterpret_cast<const float4*>(from));
    return {{v.x, v.y, v.z, v.w}};
}

__device__ void store(float* to, const Row& row)
{
    __stcs(reinterpret_cast<float4*>(to),
           make_float4(row.at[0], row.at[1], row.at[2], row.at[3]));
}

// Updates four points of both substances from their rows and their west and east neighbours.
__device__ void points(const Reaction& r, const float* u, const float* v, float* new_u,
                       float* new_v, size_t row, unsigned i, unsigned west, unsigned east,
                       const Row (&us)[3], const Row (&vs)[3])
{
    const float ends_u[2] = {__ldg(u + row + west), __ldg(u + row + east)};
    const float ends_v[2] = {__ldg(v + row + west), __ldg(v + row + east)};
    Row next_u, next_v;
#pragma unroll
    for (int p = 0; p < 4; ++p) {
        const auto laplacian = [&](const Row (&f)[3], const float (&ends)[2]) {
            const float w = p == 0 ? ends[0] : f[1].at[p == 0 ? 0 : p - 1];
            const float e = p == 3 ? ends[1] : f[1].at[p == 3 ? 3 : p + 1];
            return (w + e) + (f[0].at[p] + f[2].at[p]) - f[1].at[p] * 4.0f;
        };
        const float a = us[1].at[p], b = vs[1].at[p];
        const float eaten = a * b * b, fed = (-a + 1.0f) * r.feed, gone = b * (r.feed + r.kill);
        next_u.at[p] = a + (laplacian(us, ends_u) * r.diffusion_u - eaten + fed);
        next_v.at[p] = b + (laplacian(vs, ends_v) * r.diffusion_v + eaten - gone);
    }
    store(new_u + row + i, next_u);
    store(new_v + row + i, next_v);
}

// Each thread marches through `segment` rows and keeps the rows around in registers.
extern "C" __global__ void __launch_bounds__(256)
    march(const float* u, const float* v, float* new_u, float* new_v, unsigned nx, unsigned ny,
          unsigned segment, Reaction reaction)
{
    const unsigned i = (blockIdx.x * 256 + threadIdx.x) * 4;
    const unsigned begin = blockIdx.y * segment, end = min(begin + segment, ny);
    if (i >= nx)
        return;
    const unsigned west = i == 0 ? nx - 1 : i - 1, east = i + 4 == nx ? 0 : i + 4;
    const auto column = [&](const float* field, unsigned j) {
        return load(field + size_t(j < ny ? j : j - ny) * nx + i);
    };
    Row us[3] = {column(u, begin + ny - 1), column(u, begin), column(u, begin + 1)};
    Row vs[3] = {column(v, begin + ny - 1), column(v, begin), column(v, begin + 1)};
    for (unsigned j = begin; j < end; ++j) {
        const unsigned ahead = j + 2 < ny ? j + 2 : j + 2 - ny;
        const Row next_u = column(u, ahead), next_v = column(v, ahead);
        points(reaction, u, v, new_u, new_v, size_t(j) * nx, i, west, east, us, vs);
        us[0] = us[1], us[1] = us[2], us[2] = next_u;
        vs[0] = vs[1], vs[1] = vs[2], vs[2] = next_v;
    }
}

// Each thread computes four points of one row and reads the rows around from the caches.
extern "C" __global__ void __launch_bounds__(256)
    rows(const float* u, const float* v, float* new_u, float* new_v, unsigned nx, unsigned ny,
         unsigned, Reaction reaction)
{
    const unsigned i = (blockIdx.x * 64 + threadIdx.x) * 4, j = blockIdx.y * 4 + threadIdx.y;
    if (i >= nx || j >= ny)
        return;
    const unsigned west = i == 0 ? nx - 1 : i - 1, east = i + 4 == nx ? 0 : i + 4;
    const unsigned around[3] = {j == 0 ? ny - 1 : j - 1, j, j + 1 == ny ? 0 : j + 1};
    Row us[3], vs[3];
#pragma unroll
    for (int n = 0; n < 3; ++n) {
        us[n] = load(u + size_t(around[n]) * nx + i);
        vs[n] = load(v + size_t(around[n]) * nx + i);
    }
    points(reaction, u, v, new_u, new_v, size_t(j) * nx, i, west, east, us, vs);
}
