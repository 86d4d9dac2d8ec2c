/* A driver without a device: launches take the time of a model, on a clock of their own.

   chase: the fewer blocks on an SM, the longer. copy: always the same. reuse: longer after other
   memory was read. compute: the fewer SMs, the longer. Each adds to the number that its argument
   points to, so that a launch that is lost or doubled is seen. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *Handle;
typedef struct { unsigned grid[3], block[3], shared; Handle stream; void *attributes; unsigned count; } Config;
typedef struct { const char *name; int most_dynamic, carveout; } Function;
typedef struct { double now; int sms, capturing; } Stream;
typedef struct { double time; } Event;
enum { SMS = 132, L2 = 50 << 20, SHARED = 228 << 10, OPTIN = 227 << 10, REFUSED = 1 };

static Stream legacy = {0, SMS, 0}, per_thread = {0, SMS, 0};
static Function functions[] = {{"chase", 49152, -1}, {"copy", 49152, -1}, {"reuse", 49152, -1},
                               {"compute", 49152, -1}, {"profkit_read", 49152, -1}};
static int is_cold;
static long launches, reads, green;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static Stream *of(Handle stream)
{
    return (uintptr_t)stream == 2 ? &per_thread : (uintptr_t)stream < 2 ? &legacy : stream;
}
static int resident(int threads, size_t shared)
{
    int by_threads = 2048 / threads, by_shared = SHARED / (int)(shared + 1024);
    by_threads = by_threads > 32 ? 32 : by_threads;
    return by_threads < by_shared ? by_threads : by_shared;
}
static int run(Function *function, const unsigned *grid, const unsigned *block, unsigned shared, Handle handle, void **arguments)
{
    Stream *stream = of(handle);
    double blocks = (double)grid[0] * grid[1] * grid[2];
    int threads = block[0] * block[1] * block[2], most = resident(threads, shared);
    double on_sm = blocks / stream->sms < most ? blocks / stream->sms : most, seconds;
    if ((int)shared > function->most_dynamic || !most)
        return REFUSED;
    if (stream->capturing)
        return 0;
    pthread_mutex_lock(&lock);
    seconds = 1e-4 + 1e-7 * (launches++ * 7 % 10);
    if (!strcmp(function->name, "profkit_read")) {
        uint64_t mask = *(uint64_t *)arguments[1];
        is_cold = mask >= L2;
        reads++;
    } else {
        if (!strcmp(function->name, "chase"))
            seconds *= 16 / on_sm;
        if (!strcmp(function->name, "reuse") && is_cold)
            seconds *= 1.5;
        if (!strcmp(function->name, "compute"))
            seconds *= (double)SMS / stream->sms;
        is_cold = 0;
        ++*(long *)*(void **)arguments[0];
    }
    stream->now += seconds;
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuInit(unsigned flags) { return (int)flags; }
int cuCtxGetCurrent(Handle *context) { return *context = &lock, 0; }
int cuCtxGetDevice(int *device) { return *device = 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 16 ? SMS : attribute == 38 ? L2 : attribute == 97 ? OPTIN : 0;
    return device;
}
int cuThreadExchangeStreamCaptureMode(int *mode)
{
    static __thread int current;
    int before = current;
    current = *mode;
    *mode = before;
    return 0;
}
int cuStreamCreate(Handle *stream, unsigned flags)
{
    Stream *made = calloc(1, sizeof *made);
    made->sms = SMS;
    *stream = made;
    return flags > 1;
}
int cuStreamBeginCapture(Handle stream, int mode) { return of(stream)->capturing = 1, mode > 2; }
int cuStreamEndCapture(Handle stream, Handle *graph) { return of(stream)->capturing = 0, *graph = &reads, 0; }
int cuStreamIsCapturing(Handle stream, int *capturing) { return *capturing = of(stream)->capturing, 0; }
int cuStreamSynchronize(Handle stream) { return stream && 0; }
int cuStreamWaitEvent(Handle stream, Handle event, unsigned flags)
{
    double time = ((Event *)event)->time;
    of(stream)->now = of(stream)->now > time ? of(stream)->now : time;
    return (int)flags;
}
int cuEventCreate(Handle *event, unsigned flags) { return *event = calloc(1, sizeof(Event)), flags > 2; }
int cuEventRecord(Handle event, Handle stream) { return ((Event *)event)->time = of(stream)->now, of(stream)->capturing; }
int cuEventQuery(Handle event) { return !event; }
int cuEventElapsedTime(float *milliseconds, Handle start, Handle end)
{
    *milliseconds = (float)(1e3 * (((Event *)end)->time - ((Event *)start)->time));
    return 0;
}
int cuEventDestroy_v2(Handle event) { return free(event), 0; }
int cuMemAlloc_v2(uint64_t *pointer, size_t size) { return *pointer = 64, !size; }
int cuModuleLoadData(Handle *module, const char *image) { return *module = functions, !strstr(image, "profkit_read"); }
int cuModuleGetFunction(Handle *function, Handle module, const char *name)
{
    for (size_t i = 0; module && i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i].name, name))
            return *function = functions + i, 0;
    return 500;
}
int cuFuncGetName(const char **name, Handle function) { return *name = ((Function *)function)->name, 0; }
int cuFuncGetAttribute(int *value, int attribute, Handle function)
{
    *value = attribute == 8 ? ((Function *)function)->most_dynamic : attribute == 9 ? ((Function *)function)->carveout : 0;
    return 0;
}
int cuFuncSetAttribute(Handle function, int attribute, int value)
{
    if (attribute == 8 && value > OPTIN)
        return REFUSED;
    *(attribute == 8 ? &((Function *)function)->most_dynamic : &((Function *)function)->carveout) = value;
    return 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Handle function, int threads, size_t shared)
{
    return *blocks = resident(threads, shared), !function;
}
int cuLaunchKernel(Handle f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, Handle stream, void **arguments, void **extra)
{
    unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
    return extra ? REFUSED : run(f, grid, block, shared, stream, arguments);
}
int cuLaunchKernel_ptsz(Handle f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, Handle stream, void **arguments, void **extra)
{
    return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream ? stream : (Handle)2, arguments, extra);
}
int cuLaunchKernelEx(const Config *config, Handle f, void **arguments, void **extra)
{
    return extra ? REFUSED : run(f, config->grid, config->block, config->shared, config->stream, arguments);
}
int cuDevicePrimaryCtxReset_v2(int device) { return device; }
int cuGraphLaunch(Handle graph, Handle stream) { return !graph || !of(stream); }
#ifndef OLD
int cuDeviceGetDevResource(int device, char *resource, int type) { return device + type - 1 + !resource; }
int cuDevSmResourceSplitByCount(char *part, unsigned *groups, const char *all, char *rest, unsigned flags, unsigned least)
{
    unsigned count = (least + 7) / 8 * 8;
    memcpy(part + 96, &count, sizeof count);
    return !all || rest || flags || *groups != 1;
}
int cuDevResourceGenerateDesc(Handle *description, char *part, unsigned count)
{
    memcpy(&green, part + 96, 4);
    *description = &green;
    return count != 1;
}
int cuGreenCtxCreate(Handle *context, Handle description, int device, unsigned flags)
{
    *context = description;
    return device + (int)flags - 1;
}
int cuGreenCtxStreamCreate(Handle *stream, Handle context, unsigned flags, int priority)
{
    cuStreamCreate(stream, flags);
    ((Stream *)*stream)->sms = (int)*(long *)context;
    return flags != 1 || priority;
}
#endif

/* As NVIDIA's, it finds its own functions without dlsym. */
#define ENTRY(name) {#name, (void *)name},
int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *state)
{
    static const struct { const char *name; void *function; } table[] = {
        ENTRY(cuInit) ENTRY(cuLaunchKernel) ENTRY(cuLaunchKernelEx) ENTRY(cuLaunchKernel_ptsz)
        ENTRY(cuModuleLoadData) ENTRY(cuModuleGetFunction) ENTRY(cuStreamCreate) ENTRY(cuGraphLaunch)
        ENTRY(cuDevicePrimaryCtxReset_v2) ENTRY(cuStreamBeginCapture) ENTRY(cuStreamEndCapture) ENTRY(cuFuncSetAttribute)};
    char name[64];
    int is_per_thread = flags & 2 && !strcmp(symbol, "cuLaunchKernel"), is_second = !strcmp(symbol, "cuDevicePrimaryCtxReset");
    snprintf(name, sizeof name, "%s%s", symbol, is_per_thread ? "_ptsz" : is_second ? "_v2" : "");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(name, table[i].name))
            return *function = table[i].function, version < 12000 + (state && *state == 2);
    return 500;
}
