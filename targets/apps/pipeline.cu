// A pipeline of kernels and copies in plain CUDA C++, for each case as it is often written and
// mended:
//
//     nvcc -O2 -arch=native -o pipeline targets/apps/pipeline.cu
//     ./pipeline --case allocation --variant before --steps 30 [--time] [--against after]
//
// Cases: allocation (cudaMalloc and cudaFree every step, or once), synchronization (after every
// kernel, or none), pageable (copies from pageable memory in line, or from pinned memory on an own
// stream), streams (independent chains of small kernels in one stream, or in one each).

#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#define CHECK(call)                                                                       \
    do {                                                                                  \
        cudaError_t status = (call);                                                      \
        if (status != cudaSuccess) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status)); \
            std::exit(1);                                                                 \
        }                                                                                 \
    } while (0)

__global__ void scale(float* values, size_t count, float factor) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count;
         i += size_t(gridDim.x) * blockDim.x)
        values[i] = values[i] * factor + 1.0f;
}

__global__ void smooth(const float* in, float* out, size_t count) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count;
         i += size_t(gridDim.x) * blockDim.x) {
        size_t left = i ? i - 1 : 0, right = i + 1 < count ? i + 1 : i;
        out[i] = 0.25f * in[left] + 0.5f * in[i] + 0.25f * in[right];
    }
}

// A long recurrence in each thread: its time depends on `rounds` alone, not on memory.
__global__ void iterate(float* values, size_t count, int rounds) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i >= count) return;
    float value = values[i];
    for (int round = 0; round < rounds; ++round) value = value * 0.999f + 0.001f;
    values[i] = value;
}

using Step = std::function<void()>;

float* device_memory(size_t count) {
    float* memory;
    CHECK(cudaMalloc(&memory, count * sizeof(float)));
    CHECK(cudaMemset(memory, 0, count * sizeof(float)));
    return memory;
}

Step allocation(bool fixed) {
    const size_t count = size_t(32) << 20;  // 128 MB, a kernel of some 60 us
    auto work = [count](float* a, float* b) {
        scale<<<1024, 256>>>(a, count, 0.5f);
        smooth<<<1024, 256>>>(a, b, count);
        scale<<<1024, 256>>>(b, count, 0.5f);
        smooth<<<1024, 256>>>(b, a, count);
    };
    if (fixed) {
        float *a = device_memory(count), *b = device_memory(count);
        return [=] { work(a, b); };
    }
    return [=] {
        float *a, *b;
        CHECK(cudaMalloc(&a, count * sizeof(float)));
        CHECK(cudaMalloc(&b, count * sizeof(float)));
        work(a, b);
        CHECK(cudaFree(a));
        CHECK(cudaFree(b));
    };
}

Step synchronization(bool fixed) {
    const size_t count = 1 << 20;
    float *a = device_memory(count), *b = device_memory(count);
    return [=] {
        for (int kernel = 0; kernel < 50; ++kernel) {
            iterate<<<count / 256, 256>>>(kernel % 2 ? a : b, count, 300);
            if (!fixed) CHECK(cudaDeviceSynchronize());
        }
    };
}

Step pageable(bool fixed) {
    const size_t count = size_t(8) << 20;  // 32 MB
    const size_t bytes = count * sizeof(float);
    auto compute = [count](float* values, cudaStream_t stream) {
        for (int kernel = 0; kernel < 6; ++kernel)
            iterate<<<count / 256, 256, 0, stream>>>(values, count, 1500);
    };
    if (!fixed) {
        float* host = static_cast<float*>(std::malloc(bytes));
        std::fill(host, host + count, 1.0f);
        float* device = device_memory(count);
        return [=] {
            CHECK(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
            compute(device, 0);
        };
    }
    float* host;
    CHECK(cudaMallocHost(&host, bytes));
    std::fill(host, host + count, 1.0f);
    struct Slot {
        float* device;
        cudaEvent_t copied, computed;
    };
    auto slots = std::make_shared<std::vector<Slot>>(2);
    for (Slot& slot : *slots) {
        slot.device = device_memory(count);
        CHECK(cudaEventCreateWithFlags(&slot.copied, cudaEventDisableTiming));
        CHECK(cudaEventCreateWithFlags(&slot.computed, cudaEventDisableTiming));
    }
    cudaStream_t copies, kernels;
    CHECK(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&kernels, cudaStreamNonBlocking));
    auto number = std::make_shared<size_t>(0);
    return [=] {
        Slot& slot = (*slots)[(*number)++ % 2];
        CHECK(cudaStreamWaitEvent(copies, slot.computed, 0));
        CHECK(cudaMemcpyAsync(slot.device, host, bytes, cudaMemcpyHostToDevice, copies));
        CHECK(cudaEventRecord(slot.copied, copies));
        CHECK(cudaStreamWaitEvent(kernels, slot.copied, 0));
        compute(slot.device, kernels);
        CHECK(cudaEventRecord(slot.computed, kernels));
    };
}

Step streams(bool fixed) {
    const int chains = 8, links = 12;
    const size_t count = 16 * 256;  // 16 blocks: a chain leaves most of the GPU unused
    struct Chain {
        float* values;
        cudaStream_t stream;
    };
    auto all = std::make_shared<std::vector<Chain>>(chains);
    for (Chain& chain : *all) {
        chain.values = device_memory(count);
        CHECK(cudaStreamCreateWithFlags(&chain.stream, cudaStreamNonBlocking));
    }
    if (!fixed)
        for (Chain& chain : *all) chain.stream = all->front().stream;
    return [=] {
        for (int link = 0; link < links; ++link)
            for (Chain& chain : *all)
                iterate<<<count / 256, 256, 0, chain.stream>>>(chain.values, count, 20000);
    };
}

struct Options {
    std::string name = "allocation", variant = "before", against;
    int steps = 30, warmup = 5, blocks = 9;
    bool timed = false;
};

void run(const Step& step, int count, bool marked) {
    for (int i = 0; i < count; ++i) {
        if (marked) nvtxRangePushA("step");
        step();
        if (marked) nvtxRangePop();
    }
}

double block(const Step& step, int count) {  // milliseconds per step
    CHECK(cudaDeviceSynchronize());
    auto started = std::chrono::steady_clock::now();
    run(step, count, false);
    CHECK(cudaDeviceSynchronize());
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - started;
    return took.count() / count;
}

void print(const char* key, const std::vector<std::vector<double>>& sides, bool median) {
    std::printf(", \"%s\": [", key);
    for (size_t side = 0; side < sides.size(); ++side) {
        std::vector<double> values = sides[side];
        if (median) {
            std::sort(values.begin(), values.end());
            values = {values[values.size() / 2]};
        }
        std::printf(side ? ", " : "");
        if (!median) std::printf("[");
        for (size_t i = 0; i < values.size(); ++i) std::printf(i ? ", %.6f" : "%.6f", values[i]);
        if (!median) std::printf("]");
    }
    std::printf("]");
}

int main(int argc, char** argv) {
    Options asked;
    for (int i = 1; i < argc; ++i) {
        std::string word = argv[i], joined;
        size_t equals = word.find('=');
        if (equals != std::string::npos) {
            joined = word.substr(equals + 1);
            word.resize(equals);
        }
        auto value = [&] {
            if (equals != std::string::npos) return joined;
            return std::string(++i < argc ? argv[i] : "");
        };
        if (word == "--case") asked.name = value();
        else if (word == "--variant") asked.variant = value();
        else if (word == "--against") asked.against = value();
        else if (word == "--steps") asked.steps = std::atoi(value().c_str());
        else if (word == "--warmup") asked.warmup = std::atoi(value().c_str());
        else if (word == "--blocks") asked.blocks = std::atoi(value().c_str());
        else if (word == "--time") asked.timed = true;
        else {
            std::fprintf(stderr, "pipeline: unknown option %s\n", word.c_str());
            return 2;
        }
    }
    auto make = [&](const std::string& variant) -> Step {
        bool fixed = variant.find("after") != std::string::npos;
        if (asked.name == "allocation") return allocation(fixed);
        if (asked.name == "synchronization") return synchronization(fixed);
        if (asked.name == "pageable") return pageable(fixed);
        if (asked.name == "streams") return streams(fixed);
        std::fprintf(stderr, "pipeline: unknown case %s\n", asked.name.c_str());
        std::exit(2);
    };
    std::vector<Step> sides{make(asked.variant)};
    if (!asked.against.empty()) sides.push_back(make(asked.against));
    if (!asked.timed) {
        for (size_t side = 0; side < sides.size(); ++side) {
            if (sides.size() > 1) nvtxRangePushA(("side " + std::to_string(side)).c_str());
            run(sides[side], asked.warmup, false);
            CHECK(cudaDeviceSynchronize());
            run(sides[side], asked.steps, true);
            CHECK(cudaDeviceSynchronize());
            if (sides.size() > 1) nvtxRangePop();
        }
        return 0;
    }
    std::vector<int> lengths;
    for (const Step& side : sides) {
        block(side, std::max(1, asked.warmup));
        double milliseconds = block(side, std::max(1, asked.steps / 4));
        lengths.push_back(std::min(std::max(asked.steps, int(150 / milliseconds)), 2000));
    }
    std::vector<std::vector<double>> blocks(sides.size());
    for (int number = 0; number < asked.blocks; ++number)
        for (size_t side = 0; side < sides.size(); ++side)
            blocks[side].push_back(block(sides[side], lengths[side]));
    CHECK(cudaGetLastError());
    cudaDeviceProp gpu;
    CHECK(cudaGetDeviceProperties(&gpu, 0));
    std::printf("{\"program\": \"pipeline\", \"device\": \"%s\", \"steps_per_block\": [", gpu.name);
    for (size_t side = 0; side < lengths.size(); ++side)
        std::printf(side ? ", %d" : "%d", lengths[side]);
    std::printf("]");
    print("ms", blocks, false);
    print("median_ms", blocks, true);
    std::printf("}\n");
    return 0;
}
