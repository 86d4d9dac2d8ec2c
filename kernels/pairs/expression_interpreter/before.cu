// Evaluates an expression over the columns of a table, for each row, by interpretation of a program
// of 48 steps. What is wrong: a thread has one row, so each row pays for the fetch and the decoding
// of each step, which is several times the work of the step itself.
//
// Architectures: sm_80, sm_90a.

constexpr int kThreads = 256;
constexpr int kColumns = 3;
constexpr int kLength = 48;  // of the program

struct Step {
  int operation, column;
  float constant;
};

extern "C" __global__ void __launch_bounds__(kThreads)
    evaluate(const int* __restrict__ operations, const int* __restrict__ operands,
             const float* __restrict__ constants, const float* __restrict__ table,
             float* __restrict__ out, int rows) {
  __shared__ Step program[kLength];
  for (int i = threadIdx.x; i < kLength; i += kThreads) {
    program[i] = Step{operations[i], operands[i], constants[i]};
  }
  __syncthreads();
  const int row = blockIdx.x * kThreads + threadIdx.x;
  if (row >= rows) return;
  float values[kColumns];
#pragma unroll
  for (int k = 0; k < kColumns; ++k) values[k] = table[k * rows + row];
  float result = 0.0f;
#pragma unroll 1
  for (int i = 0; i < kLength; ++i) {
    const Step step = program[i];
    const float value = step.column == 0 ? values[0] : step.column == 1 ? values[1] : values[2];
    switch (step.operation) {
      case 0: result = 0.5f * result + step.constant; break;
      case 1: result = fmaxf(result, value - step.constant); break;
      case 2: result = fminf(result, value + step.constant); break;
      case 3: result = value - step.constant * result; break;
      case 4: result = result + step.constant * value; break;
      default: result = fabsf(result - step.constant); break;
    }
  }
  out[row] = result;
}
