// Corrects seismic traces for spreading and adds a share of a reference trace. Two literals without
// the suffix f make the arithmetic double, with conversions there and back. They fit into the time
// that DRAM takes for the traces.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;

__device__ __forceinline__ float corrected(float sample, float reference) {
  return sample * 1.0375 + reference * 0.2625;
}

// n is a number of float4.
extern "C" __global__ void __launch_bounds__(kThreads)
    correct(const float4* __restrict__ traces, const float4* __restrict__ references,
            float4* __restrict__ out, int n) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= n) return;
  const float4 t = traces[i];
  const float4 r = references[i];
  out[i] = make_float4(corrected(t.x, r.x), corrected(t.y, r.y), corrected(t.z, r.z),
                       corrected(t.w, r.w));
}
