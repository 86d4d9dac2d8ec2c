// Evaluates an expression over the columns of a table, for each row, by interpretation of a program
// of 48 steps. A thread fetches and decodes a step once for four rows.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kColumns = 3;
constexpr int kLength = 48;  // of the program

struct Step {
  int operation, column;
  float constant;
};
constexpr int kRows = 4;  // of a thread

extern "C" __global__ void __launch_bounds__(kThreads)
    evaluate(const int* __restrict__ operations, const int* __restrict__ operands,
             const float* __restrict__ constants, const float* __restrict__ table,
             float* __restrict__ out, int rows) {
  __shared__ Step program[kLength];
  for (int i = threadIdx.x; i < kLength; i += kThreads) {
    program[i] = Step{operations[i], operands[i], constants[i]};
  }
  __syncthreads();
  const int row = (blockIdx.x * kThreads + threadIdx.x) * kRows;
  if (row >= rows) return;
  float values[kColumns][kRows];
#pragma unroll
  for (int k = 0; k < kColumns; ++k) {
    const float4 four = *reinterpret_cast<const float4*>(table + k * rows + row);
    values[k][0] = four.x, values[k][1] = four.y, values[k][2] = four.z, values[k][3] = four.w;
  }
  float result[kRows] = {};
#pragma unroll 1
  for (int i = 0; i < kLength; ++i) {
    const Step step = program[i];
    float value[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      value[r] = step.column == 0 ? values[0][r] : step.column == 1 ? values[1][r] : values[2][r];
    }
    const float c = step.constant;
    switch (step.operation) {
#define EACH(expression)                                        \
  _Pragma("unroll") for (int r = 0; r < kRows; ++r) {           \
    const float x = result[r], v = value[r];                    \
    result[r] = (expression);                               \
  }                                                             \
  break;
      case 0: EACH(0.5f * x + c)
      case 1: EACH(fmaxf(x, v - c))
      case 2: EACH(fminf(x, v + c))
      case 3: EACH(v - c * x)
      case 4: EACH(x + c * v)
      default: EACH(fabsf(x - c))
    }
  }
  *reinterpret_cast<float4*>(out + row) = make_float4(result[0], result[1], result[2], result[3]);
}
