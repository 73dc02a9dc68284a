// A step of heat in space: the kernels of gpu-kernels/src/heat3d in CUDA C++, written by hand for
// this formula.
//
// A thread has 16 bytes of points of a row, or one point if a row is not a whole number of vectors.
// It marches along z with the planes below, here and above in registers, and locates its neighbours
// along x and y once, before the march. The order of the operations, with fmaf where the kernel
// says fused, gives the bits of the CPU.

// An image from END on stands for the value beyond an end; its number selects the end.
constexpr unsigned END = 0xFFFFFFFEu;

// halo_stencil::Layout of one field.
template <typename T> struct Layout {
    unsigned extents[3];
    unsigned segment;
    unsigned images[6][8];
    T values[6];
};

// gpu_kernels::heat3d::step::Step.
template <typename T> struct Step {
    T ratios[3];
};

template <typename T, int P> struct Points {
    T at[P];
};

template <typename T, int P> __device__ Points<T, P> load(const T* from)
{
    Points<T, P> points;
    if constexpr (P == 1) {
        points.at[0] = __ldg(from);
    } else if constexpr (sizeof(T) == 4) {
        const float4 v = __ldg(reinterpret_cast<const float4*>(from));
        points.at[0] = v.x, points.at[1] = v.y, points.at[2] = v.z, points.at[3] = v.w;
    } else {
        const double2 v = __ldg(reinterpret_cast<const double2*>(from));
        points.at[0] = v.x, points.at[1] = v.y;
    }
    return points;
}

template <typename T, int P> __device__ void store(T* to, const Points<T, P>& points)
{
    if constexpr (P == 1)
        __stcs(to, points.at[0]);
    else if constexpr (sizeof(T) == 4)
        __stcs(reinterpret_cast<float4*>(to),
               make_float4(points.at[0], points.at[1], points.at[2], points.at[3]));
    else
        __stcs(reinterpret_cast<double2*>(to), make_double2(points.at[0], points.at[1]));
}

__device__ float fused(float a, float b, float c) { return fmaf(a, b, c); }
__device__ double fused(double a, double b, double c) { return fma(a, b, c); }

// The index along an axis at which the value of `place` is stored.
template <typename T>
__device__ unsigned image(const Layout<T>& layout, int axis, int place)
{
    const int n = layout.extents[axis];
    if (place < 0)
        return layout.images[2 * axis][-1 - place];
    return place < n ? place : layout.images[2 * axis + 1][place - n];
}

// Neighbouring points in each plane, located relative to the thread's own, or a value beyond an
// end.
template <typename T, int P> struct Neighbour {
    const T* from;
    T value;

    __device__ Neighbour(const Layout<T>& layout, int axis, int place, const T* row, size_t step)
    {
        const unsigned at = image(layout, axis, place);
        from = at < END ? row + at * step : nullptr;
        value = at < END ? T(0) : layout.values[2 * axis + at % 2];
    }

    __device__ Points<T, P> in_plane(size_t offset) const
    {
        if (from)
            return load<T, P>(from + offset);
        Points<T, P> points;
        for (int e = 0; e < P; ++e)
            points.at[e] = value;
        return points;
    }
};

template <typename T, int P>
__device__ void march(const T* __restrict__ u, T* __restrict__ next, const Layout<T>& layout,
                      const Step<T>& step)
{
    const unsigned nx = layout.extents[0], ny = layout.extents[1], nz = layout.extents[2];
    const unsigned i = (blockIdx.x * 32 + threadIdx.x) * P;
    const unsigned j = blockIdx.y * 8 + threadIdx.y;
    const unsigned begin = blockIdx.z * layout.segment;
    const unsigned end = min(begin + layout.segment, nz);
    if (i >= nx || j >= ny)
        return;
    const size_t plane = (size_t)nx * ny, row = (size_t)j * nx;
    const Neighbour<T, 1> west(layout, 0, int(i) - 1, u + row, 1);
    const Neighbour<T, 1> east(layout, 0, i + P, u + row, 1);
    const Neighbour<T, P> south(layout, 1, int(j) - 1, u + i, nx);
    const Neighbour<T, P> north(layout, 1, j + 1, u + i, nx);
    const T* own = u + row + i;
    const auto along_z = [&](int k) {
        return Neighbour<T, P>(layout, 2, k, own, plane).in_plane(0);
    };
    Points<T, P> below = along_z(int(begin) - 1), here = along_z(begin), above = along_z(begin + 1);
    for (unsigned k = begin; k < end; ++k) {
        const size_t offset = k * plane;
        const Points<T, P> ahead = k + 1 < end ? along_z(k + 2) : above;
        const T w = west.in_plane(offset).at[0], e = east.in_plane(offset).at[0];
        const Points<T, P> s = south.in_plane(offset), n = north.in_plane(offset);
        Points<T, P> result;
#pragma unroll
        for (int p = 0; p < P; ++p) {
            const T c = here.at[p], twice = T(-2);
            const T low = p == 0 ? w : here.at[p == 0 ? 0 : p - 1];
            const T high = p == P - 1 ? e : here.at[p == P - 1 ? p : p + 1];
            T sum = fused(fused(c, twice, low + high), step.ratios[0], c);
            sum = fused(fused(c, twice, s.at[p] + n.at[p]), step.ratios[1], sum);
            result.at[p] =
                fused(fused(c, twice, below.at[p] + above.at[p]), step.ratios[2], sum);
        }
        store<T, P>(next + row + i + offset, result);
        below = here, here = above, above = ahead;
    }
}

// Blocks of 32 x 8 threads that march through segments of z.
#define HEAT3D(name, T, P)                                                                       \
    extern "C" __global__ void __launch_bounds__(256)                                            \
        name(const T* u, T* next, const __grid_constant__ Layout<T> layout, Step<T> step)        \
    {                                                                                            \
        if (layout.extents[0] % P == 0)                                                          \
            march<T, P>(u, next, layout, step);                                                  \
        else                                                                                     \
            march<T, 1>(u, next, layout, step);                                                  \
    }

HEAT3D(heat3d_step_f32, float, 4)
HEAT3D(heat3d_step_f64, double, 2)
