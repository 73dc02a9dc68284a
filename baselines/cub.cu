// Reductions of a whole array by CUB's DeviceReduce behind one C function, for a shared
// library (nvcc -shared).
//
//   int halo_cub_reduce(op, type, d_in, d_out, n, d_temp, temp_bytes, stream)
//
// op          0 sum, 1 minimum, 2 maximum, 3 index of the minimum, 4 index of the
//             maximum
// type        0 int (i32), 1 float (f32), 2 double (f64)
// d_in        n values, in device memory
// d_out       the result, in device memory: for op 0 to 2 one value of the type;
//             for op 3 and 4 an Extremum: the index first, then the value at
//             offset 8, 16 bytes in all. Of equal values the first counts
// d_temp      scratch memory on the device. If it is null, nothing runs and
//             *temp_bytes is set to the required number of bytes
// temp_bytes  in: the size of d_temp
// stream      a CUstream; the call returns before the result is written
// returns     a cudaError_t: 0, or an error; cudaErrorInvalidValue for an op or a
//             type that is not in the list
//
// The results are CUB's own: it chooses the order in which it adds floats. Minima and maxima use
// operator<, so the effect of a NaN depends on that order. The call uses the calling thread's
// current context, as every function of the CUDA runtime does.

#include <cub/device/device_reduce.cuh>

#include <cstddef>

namespace {

// The result of ArgMin and ArgMax: the index of an element and its value.
template <typename T>
struct Extremum {
    long long index;
    T value;
};

static_assert(sizeof(Extremum<int>) == 16 && sizeof(Extremum<float>) == 16 &&
              sizeof(Extremum<double>) == 16);

template <typename T>
cudaError_t reduce(int op, const T* in, void* out, unsigned long long n, void* temp,
                   size_t& temp_bytes, cudaStream_t stream)
{
    T* value = static_cast<T*>(out);
    // CUB writes index and value to two places.
    auto* extremum = static_cast<Extremum<T>*>(out);
    const auto count = static_cast<long long>(n);
    switch (op) {
    case 0:
        return cub::DeviceReduce::Sum(temp, temp_bytes, in, value, count, stream);
    case 1:
        return cub::DeviceReduce::Min(temp, temp_bytes, in, value, count, stream);
    case 2:
        return cub::DeviceReduce::Max(temp, temp_bytes, in, value, count, stream);
    case 3:
        return cub::DeviceReduce::ArgMin(temp, temp_bytes, in, &extremum->value, &extremum->index,
                                         count, stream);
    case 4:
        return cub::DeviceReduce::ArgMax(temp, temp_bytes, in, &extremum->value, &extremum->index,
                                         count, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

} // namespace

extern "C" int halo_cub_reduce(int op, int type, const void* d_in, void* d_out,
                               unsigned long long n, void* d_temp, size_t* temp_bytes,
                               void* stream)
{
    const auto queue = static_cast<cudaStream_t>(stream);
    switch (type) {
    case 0:
        return reduce(op, static_cast<const int*>(d_in), d_out, n, d_temp, *temp_bytes, queue);
    case 1:
        return reduce(op, static_cast<const float*>(d_in), d_out, n, d_temp, *temp_bytes, queue);
    case 2:
        return reduce(op, static_cast<const double*>(d_in), d_out, n, d_temp, *temp_bytes, queue);
    default:
        return cudaErrorInvalidValue;
    }
}
