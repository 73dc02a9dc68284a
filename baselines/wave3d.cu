// A step of waves in space: the kernels of gpu-kernels/src/wave3d in CUDA C++, written by hand for
// this formula.
//
// A thread has 16 bytes of points of a row, or one point if a row is not a whole number of vectors.
// It marches along z with nine planes in registers, and locates its neighbouring rows along y once,
// before the march. If the neighbouring vectors along x lie in the row, it loads them as whole
// vectors. The order of the operations, with fmaf where the kernel says fused, gives the bits of
// the CPU.

// The radius of the Laplacian.
constexpr int R = 4;

// An image from END on stands for the value beyond an end; its number selects the end.
constexpr unsigned END = 0xFFFFFFFEu;

// halo_stencil::Layout of FIELDS fields. Only the boundary of the first field is used.
template <typename T, int FIELDS> struct Layout {
    unsigned extents[3];
    unsigned segment;
    unsigned images[FIELDS][6][8];
    T values[FIELDS][6];
};

// gpu_kernels::wave3d::step::Laplacian.
template <typename T> struct Laplacian {
    T own;
    T weights[3][R];
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

// The past field is overwritten, so it must not be loaded as read-only memory.
template <typename T, int P> __device__ Points<T, P> load_own(const T* from)
{
    Points<T, P> points;
    if constexpr (P == 1) {
        points.at[0] = *from;
    } else if constexpr (sizeof(T) == 4) {
        const float4 v = *reinterpret_cast<const float4*>(from);
        points.at[0] = v.x, points.at[1] = v.y, points.at[2] = v.z, points.at[3] = v.w;
    } else {
        const double2 v = *reinterpret_cast<const double2*>(from);
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
template <typename L> __device__ unsigned image(const L& layout, int axis, int place)
{
    const int n = layout.extents[axis];
    if (place < 0)
        return layout.images[0][2 * axis][-1 - place];
    return place < n ? place : layout.images[0][2 * axis + 1][place - n];
}

// Neighbouring points in each plane, located relative to the thread's own, or a value beyond an
// end.
template <typename T, int P> struct Neighbour {
    const T* from;
    T value;

    template <typename L>
    __device__ void find(const L& layout, int axis, int place, const T* row, size_t step)
    {
        const unsigned at = image(layout, axis, place);
        from = at < END ? row + at * step : nullptr;
        value = at < END ? T(0) : layout.values[0][2 * axis + at % 2];
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

// The march of a thread. `kept` is null without damping. The result is written over `past`.
template <typename T, int P, bool DAMPED, typename L>
__device__ void march(const T* __restrict__ u, const T* __restrict__ courant,
                      const T* __restrict__ kept, T* __restrict__ past, const L& layout,
                      const Laplacian<T>& laplacian)
{
    const unsigned nx = layout.extents[0], ny = layout.extents[1], nz = layout.extents[2];
    const unsigned i = (blockIdx.x * 32 + threadIdx.x) * P;
    const unsigned j = blockIdx.y * 8 + threadIdx.y;
    const unsigned begin = blockIdx.z * layout.segment;
    const unsigned end = min(begin + layout.segment, nz);
    if (i >= nx || j >= ny)
        return;
    const size_t plane = (size_t)nx * ny, row = (size_t)j * nx;
    const bool inside = i >= R && i + P + R <= nx;
    Neighbour<T, P> along_y[2 * R];
#pragma unroll
    for (int m = 0; m < R; ++m) {
        along_y[2 * m].find(layout, 1, int(j) - 1 - m, u + i, nx);
        along_y[2 * m + 1].find(layout, 1, j + 1 + m, u + i, nx);
    }
    const auto along_z = [&](int k) {
        Neighbour<T, P> there;
        there.find(layout, 2, k, u + row + i, plane);
        return there.in_plane(0);
    };
    Points<T, P> window[2 * R + 1];
#pragma unroll
    for (int m = 0; m < 2 * R; ++m)
        window[m] = along_z(int(begin) - R + m);
    for (unsigned k = begin; k < end; ++k) {
        const size_t offset = k * plane, here = offset + row + i;
        window[2 * R] = along_z(k + R);
        const Points<T, P> before = load_own<T, P>(past + here), c = load<T, P>(courant + here);
        Points<T, P> damping;
        if constexpr (DAMPED)
            damping = load<T, P>(kept + here);
        // The row from R points before the thread's own points to R points after them.
        T x[P + 2 * R];
#pragma unroll
        for (int p = 0; p < P; ++p)
            x[R + p] = window[R].at[p];
        if (inside) {
#pragma unroll
            for (int v = 0; v < R / P; ++v) {
                const Points<T, P> west = load<T, P>(u + here - R + v * P);
                const Points<T, P> east = load<T, P>(u + here + P + v * P);
#pragma unroll
                for (int p = 0; p < P; ++p)
                    x[v * P + p] = west.at[p], x[R + P + v * P + p] = east.at[p];
            }
        } else {
#pragma unroll
            for (int m = 0; m < R; ++m) {
                Neighbour<T, 1> west, east;
                west.find(layout, 0, int(i) - R + m, u + row, 1);
                east.find(layout, 0, i + P + m, u + row, 1);
                x[m] = west.in_plane(offset).at[0];
                x[R + P + m] = east.in_plane(offset).at[0];
            }
        }
        Points<T, P> sums;
#pragma unroll
        for (int p = 0; p < P; ++p)
            sums.at[p] = window[R].at[p] * laplacian.own;
#pragma unroll
        for (int m = 1; m <= R; ++m)
#pragma unroll
            for (int p = 0; p < P; ++p)
                sums.at[p] = fused(x[R + p - m] + x[R + p + m], laplacian.weights[0][m - 1],
                                   sums.at[p]);
#pragma unroll
        for (int m = 1; m <= R; ++m) {
            const Points<T, P> south = along_y[2 * m - 2].in_plane(offset);
            const Points<T, P> north = along_y[2 * m - 1].in_plane(offset);
#pragma unroll
            for (int p = 0; p < P; ++p)
                sums.at[p] = fused(south.at[p] + north.at[p], laplacian.weights[1][m - 1],
                                   sums.at[p]);
        }
        Points<T, P> result;
#pragma unroll
        for (int p = 0; p < P; ++p) {
            T sum = sums.at[p];
#pragma unroll
            for (int m = 1; m <= R; ++m)
                sum = fused(window[R - m].at[p] + window[R + m].at[p],
                            laplacian.weights[2][m - 1], sum);
            const T now = window[R].at[p];
            const T on = DAMPED ? fused(now - before.at[p], damping.at[p], now)
                                : fused(now, T(2), -before.at[p]);
            result.at[p] = fused(sum, c.at[p], on);
        }
        store<T, P>(past + here, result);
#pragma unroll
        for (int m = 0; m < 2 * R; ++m)
            window[m] = window[m + 1];
    }
}

// Blocks of 32 x 8 threads that march through segments of z.
#define WAVE3D(name, T, P)                                                                       \
    extern "C" __global__ void __launch_bounds__(256)                                            \
        wave3d_closed_##name(const T* u, const T* courant, T* past,                              \
                             const __grid_constant__ Layout<T, 3> layout, Laplacian<T> laplacian) \
    {                                                                                            \
        if (layout.extents[0] % P == 0)                                                          \
            march<T, P, false>(u, courant, (const T*)nullptr, past, layout, laplacian);          \
        else                                                                                     \
            march<T, 1, false>(u, courant, (const T*)nullptr, past, layout, laplacian);          \
    }                                                                                            \
    extern "C" __global__ void __launch_bounds__(256)                                            \
        wave3d_absorbing_##name(const T* u, const T* courant, const T* kept, T* past,            \
                                const __grid_constant__ Layout<T, 4> layout,                     \
                                Laplacian<T> laplacian)                                          \
    {                                                                                            \
        if (layout.extents[0] % P == 0)                                                          \
            march<T, P, true>(u, courant, kept, past, layout, laplacian);                        \
        else                                                                                     \
            march<T, 1, true>(u, courant, kept, past, layout, laplacian);                        \
    }

WAVE3D(f32, float, 4)
WAVE3D(f64, double, 2)
