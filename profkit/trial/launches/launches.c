/* Times the kernel launches of a program that it is preloaded into, and perturbs them.

   Whoever launches gets cuLaunchKernel from the dynamic linker, from dlsym of libcuda.so.1, or from
   cuGetProcAddress, which comes from dlsym; the CUDA runtime, linked statically or not, does the
   last. All three lead here. A launch that isn't chosen, can't be timed or fails with its
   perturbation goes to the driver as it came. Nothing here waits for the device
   but a second at the end. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *Handle;
typedef struct { /* CUlaunchConfig */
    unsigned grid[3], block[3], shared;
    Handle stream;
    const char *attributes;
    unsigned count;
} Config;
typedef struct { char bytes[512]; } Resource; /* CUdevResource has 144 bytes in CUDA 13 */
enum { ATTRIBUTE = 72, COOPERATIVE = 2, CLUSTER = 4 }; /* bytes and ids of CUlaunchAttribute */
enum { SMS = 16, L2 = 38, SHARED_OPTIN = 97, STATIC = 1, MOST_DYNAMIC = 8, CARVEOUT = 9 };
enum { KERNELS = 4096, CONTEXTS = 16, STREAMS = 32, SAMPLES = 64, FIRST = 16, STEP = 16 };

#define FUNCTIONS(X) \
    X(cuLaunchKernel, Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **, void **) \
    X(cuLaunchKernel_ptsz, Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **, void **) \
    X(cuLaunchKernelEx, const Config *, Handle, void **, void **) \
    X(cuLaunchKernelEx_ptsz, const Config *, Handle, void **, void **) \
    X(cuGraphLaunch, Handle, Handle) X(cuDevicePrimaryCtxReset_v2, int) X(cuDevicePrimaryCtxRelease_v2, int) \
    X(cuCtxDestroy_v2, Handle) \
    X(cuGraphLaunch_ptsz, Handle, Handle) \
    X(cuGetProcAddress, const char *, void **, int, uint64_t) \
    X(cuGetProcAddress_v2, const char *, void **, int, uint64_t, int *)
#define USED(X) \
    X(cuCtxGetCurrent, Handle *) X(cuCtxGetDevice, int *) X(cuDeviceGetAttribute, int *, int, int) \
    X(cuThreadExchangeStreamCaptureMode, int *) X(cuStreamIsCapturing, Handle, int *) \
    X(cuEventCreate, Handle *, unsigned) X(cuEventRecord, Handle, Handle) X(cuEventQuery, Handle) \
    X(cuEventElapsedTime, float *, Handle, Handle) X(cuEventDestroy_v2, Handle) \
    X(cuStreamWaitEvent, Handle, Handle, unsigned) X(cuStreamSynchronize, Handle) X(cuMemAlloc_v2, uint64_t *, size_t) \
    X(cuModuleLoadData, Handle *, const void *) X(cuModuleGetFunction, Handle *, Handle, const char *) \
    X(cuFuncGetName, const char **, Handle) X(cuKernelGetName, const char **, Handle) \
    X(cuFuncGetAttribute, int *, int, Handle) X(cuFuncSetAttribute, Handle, int, int) \
    X(cuKernelGetAttribute, int *, int, Handle, int) X(cuKernelSetAttribute, int, int, Handle, int) \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *, Handle, int, size_t) \
    X(cuDeviceGetDevResource, int, Resource *, int) X(cuDevResourceGenerateDesc, Handle *, Resource *, unsigned) \
    X(cuDevSmResourceSplitByCount, Resource *, unsigned *, const Resource *, Resource *, unsigned, unsigned) \
    X(cuGreenCtxCreate, Handle *, Handle, int, unsigned) X(cuGreenCtxStreamCreate, Handle *, Handle, unsigned, int)

#define POINTER(name, ...) int (*name)(__VA_ARGS__);
static struct { FUNCTIONS(POINTER) USED(POINTER) } driver;

typedef struct {
    Handle context, reader, green, from[STREAMS], to[STREAMS];
    uint64_t scratch, warm, cold; /* bytes that the reader reads, warm or cold */
    int device, sms, part, optin;
    const char *problem;
} Context;
typedef struct {
    Handle function;
    char *name;
    unsigned grid[3], block[3], shared, added;
    int resident[2];
    const char *left;
    long launches, refused, count;
    float milliseconds[SAMPLES];
} Kernel;
typedef struct Pending { struct Pending *next; Kernel *kernel; Handle start, end; } Pending;
typedef struct { Config config; Handle function; void **arguments, **extra; int is_extended, is_per_thread; } Call;

static enum { OFF, UNCHANGED, SMALL_L1, HALF_WARPS, COLD_L2, HALF_SMS } mode;
static const char *const modes[] = {"", "unchanged", "small-l1", "half-warps", "cold-l2", "half-sms"};
static Context contexts[CONTEXTS];
static Kernel *kernels[KERNELS];
static Pending *head, *tail;
static long graphs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, harvest = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Reads `n` bytes of the `mask` + 1 at `p`. Reading leaves clean lines: what a memset leaves is
   written back while the next kernel runs. It also keeps the stream busy until all of a launch is
   submitted, so that no time of the host is measured. */
static const char reader[] =
    ".version 6.0\n.target sm_60\n.address_size 64\n"
    ".visible .entry profkit_read(.param .u64 p, .param .u64 mask, .param .u64 n)\n{\n"
    ".reg .pred %q; .reg .b32 %a, %b, %c, %d; .reg .b64 %p, %m, %n, %i, %s, %x;\n"
    "ld.param.u64 %p, [p]; ld.param.u64 %m, [mask]; ld.param.u64 %n, [n];\n"
    "mov.u32 %a, %ctaid.x; mov.u32 %b, %ntid.x; mov.u32 %c, %tid.x; mov.u32 %d, %nctaid.x;\n"
    "mad.lo.u32 %a, %a, %b, %c; mul.lo.u32 %d, %d, %b;\n"
    "mul.wide.u32 %i, %a, 16; mul.wide.u32 %s, %d, 16;\n"
    "next: setp.ge.u64 %q, %i, %n; @%q bra done;\n"
    "and.b64 %x, %i, %m; add.u64 %x, %x, %p; ld.volatile.global.v4.u32 {%a, %b, %c, %d}, [%x];\n"
    "add.u64 %i, %i, %s; bra next;\ndone: ret;\n}\n";

typedef void *(*Lookup)(void *, const char *);
static Lookup lookup(void) {
    static Lookup real;
    static const char *const versions[] = {"GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.34"};
    for (int i = 0; !real && i < 3; i++)
        real = (Lookup)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    return real;
}

static void forget(void) { /* a forked child has its parent's records, but no device */
    memset(kernels, 0, sizeof kernels);
    head = tail = calloc(1, sizeof *head);
    graphs = 0;
    pthread_mutex_init(&lock, NULL);
    pthread_mutex_init(&harvest, NULL);
}

static void collect(void) {
    float elapsed;
    if (pthread_mutex_trylock(&harvest))
        return;
    for (Pending *each; each = head, __atomic_load_n(&each->next, __ATOMIC_ACQUIRE);) {
        Kernel *kernel = each->kernel;
        if (driver.cuEventQuery(each->end) == 600) /* not ready */
            break;
        if (!driver.cuEventElapsedTime(&elapsed, each->start, each->end) && kernel->count < SAMPLES)
            kernel->milliseconds[kernel->count++] = elapsed;
        driver.cuEventDestroy_v2(each->start);
        driver.cuEventDestroy_v2(each->end);
        head = each->next;
        free(each);
    }
    pthread_mutex_unlock(&harvest);
}

/* Nothing is recorded any more: events, memory and code end with their context. */
static void finish(void) {
    if (mode == OFF || !contexts[0].context)
        return;
    mode = OFF;
    for (int i = 0; i < 100 && head->next; i++, usleep(10000)) /* 1 s at most */
        collect();
}

static void report(void) {
    char path[4096];
    const char *folder = getenv("PROFKIT_LAUNCHES"), *problem = "";
    finish();
    snprintf(path, sizeof path, "%s/%d.launches", folder ? folder : ".", getpid());
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    for (int i = 0; i < CONTEXTS && !*problem; i++)
        problem = contexts[i].problem ? contexts[i].problem : "";
    fprintf(file, "{\"graphs\":%ld,\"sms\":[%d,%d],\"problem\":\"%s\",\"kernels\":[", graphs,
            contexts[0].sms, contexts[0].part, problem);
    for (int i = 0, n = 0; i < KERNELS; i++) {
        Kernel *kernel = kernels[i];
        if (!kernel || !kernel->left)
            continue;
        const unsigned *grid = kernel->grid, *block = kernel->block;
        fprintf(file, "%s\n{\"name\":\"%s\",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"shared\":%u,\"added\":%u,"
                "\"resident\":[%d,%d],\"left\":\"%s\",\"launches\":%ld,\"refused\":%ld,\"times\":[",
                n++ ? "," : "", kernel->name, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                kernel->shared, kernel->added, kernel->resident[0], kernel->resident[1], kernel->left,
                kernel->launches, kernel->refused);
        for (int k = 0; k < kernel->count; k++)
            fprintf(file, "%s%.9g", k ? "," : "", kernel->milliseconds[k] / 1e3);
        fputs("]}", file);
    }
    fputs("]}\n", file);
    fclose(file);
}

static void start(void) {
    const char *name = getenv("PROFKIT_PERTURBATION");
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    library = library ? library : dlopen("libcuda.so.1", RTLD_LAZY);
#define LOAD(name, ...) *(void **)&driver.name = library ? lookup()(library, #name) : NULL;
    FUNCTIONS(LOAD) USED(LOAD)
    for (int i = UNCHANGED; name && i <= HALF_SMS; i++)
        if (!strcmp(name, modes[i]))
            mode = i;
    if (!driver.cuStreamIsCapturing || !driver.cuEventCreate || !driver.cuThreadExchangeStreamCaptureMode)
        mode = OFF;
    if (mode == OFF)
        return;
    head = tail = calloc(1, sizeof *head);
    pthread_atfork(NULL, NULL, forget);
}

/* A green context of half the SMs; what its kernels need of memory and code is the primary one's. */
static const char *divide(Context *context) {
    Resource all = {{0}}, half = {{0}};
    Handle description;
    unsigned groups = 1;
    if (!driver.cuGreenCtxStreamCreate || !driver.cuDevSmResourceSplitByCount)
        return "the driver has no green contexts (CUDA 12.5)";
    if (driver.cuDeviceGetDevResource(context->device, &all, 1)
        || driver.cuDevSmResourceSplitByCount(&half, &groups, &all, NULL, 0, context->sms / 2)
        || driver.cuDevResourceGenerateDesc(&description, &half, 1)
        || driver.cuGreenCtxCreate(&context->green, description, context->device, 1))
        return "the device makes no green context";
    memcpy(&context->part, half.bytes + 96, sizeof context->part); /* CUdevSmResource.smCount */
    return NULL;
}

static const char *opened(Context *context) {
    int l2 = 0;
    Handle module;
    if (driver.cuCtxGetDevice(&context->device) || driver.cuDeviceGetAttribute(&context->sms, SMS, context->device))
        return "the context has no device";
    driver.cuDeviceGetAttribute(&l2, L2, context->device);
    driver.cuDeviceGetAttribute(&context->optin, SHARED_OPTIN, context->device);
    for (context->warm = context->cold = 1 << 20; context->cold < 2 * (uint64_t)l2;)
        context->cold *= 2;
    if (driver.cuMemAlloc_v2(&context->scratch, mode == COLD_L2 ? context->cold : context->warm)
        || driver.cuModuleLoadData(&module, reader)
        || driver.cuModuleGetFunction(&context->reader, module, "profkit_read"))
        return "no memory to read before a launch, or no kernel that does";
    if (mode == SMALL_L1 || mode == HALF_WARPS) /* as what is launched, or SMs change it in between */
        driver.cuFuncSetAttribute(context->reader, CARVEOUT, 100);
    return mode == HALF_SMS ? divide(context) : NULL;
}

static Context *context_of_thread(void) {
    Handle current;
    Context *context = NULL;
    if (driver.cuCtxGetCurrent(&current) || !current)
        return NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < CONTEXTS && !context; i++)
        if (!contexts[i].context || contexts[i].context == current)
            context = contexts + i;
    int is_new = context && !context->context;
    if (is_new) {
        if (context == contexts)
            atexit(report); /* now, as what is registered after the driver's runs before it */
        context->context = current;
        context->problem = "its first launch never ended";
    }
    pthread_mutex_unlock(&lock);
    if (is_new) /* without the lock, as memory may be allocated once the device is idle */
        __atomic_store_n(&context->problem, opened(context), __ATOMIC_RELEASE);
    return context;
}

static int submit(const Call *call, unsigned shared, Handle stream) {
    Config config = call->config;
    const unsigned *grid = config.grid, *block = config.block;
    config.shared = shared;
    config.stream = stream;
    if (call->is_extended)
        return (call->is_per_thread ? driver.cuLaunchKernelEx_ptsz : driver.cuLaunchKernelEx)(
            &config, call->function, call->arguments, call->extra);
    return (call->is_per_thread ? driver.cuLaunchKernel_ptsz : driver.cuLaunchKernel)(
        call->function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream,
        call->arguments, call->extra);
}

static unsigned volume(const unsigned *size) {
    return size[0] * size[1] * size[2];
}

/* What is launched is a CUfunction or, by the runtime of CUDA 12 and later, a CUkernel of no context. */
static int set(const Context *context, Handle function, int attribute, int value) {
    int status = driver.cuFuncSetAttribute(function, attribute, value);
    return status && driver.cuKernelSetAttribute
        ? driver.cuKernelSetAttribute(attribute, value, function, context->device) : status;
}

/* The dynamic shared memory with which half as many blocks stay on an SM as would now. */
static const char *plan(Kernel *kernel, const Context *context, const Config *config) {
    int blocks = 0, fixed = 0, threads = volume(config->block);
    int share = (volume(config->grid) + context->sms - 1) / context->sms;
    if (mode == SMALL_L1 || mode == HALF_WARPS)
        set(context, kernel->function, CARVEOUT, 100);
    if (driver.cuFuncGetAttribute(&fixed, STATIC, kernel->function) && driver.cuKernelGetAttribute) /* loads it too */
        driver.cuKernelGetAttribute(&fixed, STATIC, kernel->function, context->device);
    driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel->function, threads, config->shared);
    kernel->resident[0] = kernel->resident[1] = blocks < share ? blocks : share;
    for (unsigned i = 0; i < config->count && (mode == HALF_WARPS || mode == HALF_SMS); i++) {
        const int *id = (const int *)(config->attributes + i * ATTRIBUTE);
        if (*id == COOPERATIVE || *id == CLUSTER)
            return "cooperative or in clusters";
    }
    if (mode == HALF_SMS && volume(config->grid) < (unsigned)context->sms)
        return "fewer blocks than SMs";
    if (mode != HALF_WARPS)
        return "";
    if (kernel->resident[0] < 2)
        return "one block on an SM";
    unsigned low = config->shared, high = context->optin - fixed;
    set(context, kernel->function, MOST_DYNAMIC, high);
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel->function, threads, middle))
            blocks = 0;
        if (blocks <= kernel->resident[0] / 2)
            high = middle;
        else
            low = middle + 1;
    }
    driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&kernel->resident[1], kernel->function, threads, high);
    kernel->added = high - config->shared;
    return "";
}

static Kernel *kernel_of(const Call *call, const Context *context) {
    const Config *config = &call->config;
    const char *name = NULL;
    char text[8192];
    if ((!driver.cuFuncGetName || driver.cuFuncGetName(&name, call->function))
        && (!driver.cuKernelGetName || driver.cuKernelGetName(&name, call->function)))
        return NULL;
    if (!name || snprintf(text, sizeof text, "%s", name) >= (int)sizeof text)
        return NULL;
    for (char *letter = text; *letter; letter++)
        *letter = *letter < ' ' || *letter == '"' || *letter == '\\' ? '?' : *letter;
    size_t place = (size_t)call->function / 16 + config->grid[0] * 31u + config->block[0];
    pthread_mutex_lock(&lock);
    Kernel *kernel = NULL;
    int is_new = 0;
    for (int i = 0; i < KERNELS && !kernel; i++) {
        Kernel **slot = kernels + (place + i) % KERNELS;
        is_new = !*slot;
        if (is_new && (kernel = *slot = calloc(1, sizeof *kernel))) {
            kernel->function = call->function;
            kernel->name = strdup(text);
            memcpy(kernel->grid, config->grid, sizeof config->grid);
            memcpy(kernel->block, config->block, sizeof config->block);
            kernel->shared = config->shared;
        } else if (*slot && (*slot)->function == call->function && (*slot)->shared == config->shared
                   && !memcmp((*slot)->grid, config->grid, sizeof config->grid)
                   && !memcmp((*slot)->block, config->block, sizeof config->block) && !strcmp((*slot)->name, text))
            kernel = *slot;
    }
    long index = kernel ? kernel->launches++ : 0;
    int is_due = index < FIRST || (index % STEP == 0 && index < FIRST + (SAMPLES - FIRST) * STEP);
    pthread_mutex_unlock(&lock);
    if (kernel && is_new)
        __atomic_store_n(&kernel->left, plan(kernel, context, config), __ATOMIC_RELEASE);
    const char *left = kernel ? __atomic_load_n(&kernel->left, __ATOMIC_ACQUIRE) : NULL;
    return is_due && left && !*left ? kernel : NULL; /* NULL while it is planned, too */
}

/* Has what is submitted to a stream from now on wait for what another one has. */
static int follow(Handle stream, Handle other) {
    Handle event;
    int status = driver.cuEventCreate(&event, 2); /* without times */
    if (status)
        return status;
    status = driver.cuEventRecord(event, other);
    status = status ? status : driver.cuStreamWaitEvent(stream, event, 0);
    driver.cuEventDestroy_v2(event);
    return status;
}

/* The stream of the green context that stands for one of the program's; NULL where events don't
   lead from one to the other. */
static Handle stand_in(Context *context, Handle stream) {
    Handle found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < STREAMS && !found; i++) {
        Handle *to = context->to + i;
        if (!context->from[i] && !driver.cuGreenCtxStreamCreate(to, context->green, 1, 0))
            context->from[i] = stream;
        if (context->from[i] == stream)
            found = *to;
    }
    pthread_mutex_unlock(&lock);
    return found && !follow(stream, found) && !follow(found, stream) ? found : NULL;
}

/* The kernel that reads memory: in the default stream, it waits for others' work as events may not. */
static int read_memory(Context *context, Handle stream, uint64_t bytes) {
    uint64_t mask = (mode == COLD_L2 ? context->cold : context->warm) - 1;
    void *arguments[] = {&context->scratch, &mask, &bytes};
    return driver.cuLaunchKernel(context->reader, context->sms * 4, 1, 1, 256, 1, 1, 0, stream, arguments, NULL);
}

static int measured(const Call *call, Context *context, Kernel *kernel, Handle stream) {
    int is_apart = mode == HALF_SMS && !read_memory(context, stream, 0);
    Handle own = mode == HALF_SMS ? is_apart ? stand_in(context, stream) : NULL : stream, start = NULL, end = NULL;
    Pending *pending = calloc(1, sizeof *pending);
    int status = !pending || !own || driver.cuEventCreate(&start, 0) || driver.cuEventCreate(&end, 0)
        || read_memory(context, own, context->cold) || driver.cuEventRecord(start, own);
    if (mode == SMALL_L1 || mode == HALF_WARPS) /* again, as the program may set its own */
        status = status || set(context, call->function, CARVEOUT, 100);
    if (mode == HALF_WARPS)
        status = status || set(context, call->function, MOST_DYNAMIC, call->config.shared + kernel->added);
    status = status || submit(call, call->config.shared + kernel->added, is_apart ? own : call->config.stream);
    if (!status && is_apart && (follow(stream, own) || read_memory(context, stream, 0)))
        driver.cuStreamSynchronize(own);
    int result = status ? submit(call, call->config.shared, call->config.stream) : 0;
    status = status || driver.cuEventRecord(end, own);
    pthread_mutex_lock(&lock);
    kernel->refused += !!status;
    if (!status) { /* `tail` is an empty element, which becomes this launch's */
        *tail = (Pending){NULL, kernel, start, end};
        __atomic_store_n(&tail->next, pending, __ATOMIC_RELEASE);
        tail = pending;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static int launch(Call *call) {
    static __thread int is_inside; /* the driver may call what it exports */
    int relaxed = 2, capturing = 1;
    Handle stream = call->config.stream;
    pthread_once(&once, start);
    stream = stream ? stream : (Handle)(call->is_per_thread ? 2L : 1L); /* CU_STREAM_PER_THREAD, _LEGACY */
    if (mode == OFF || is_inside || driver.cuThreadExchangeStreamCaptureMode(&relaxed))
        return submit(call, call->config.shared, call->config.stream);
    is_inside = 1;
    Context *context = NULL;
    Kernel *kernel = NULL;
    if (!driver.cuStreamIsCapturing(stream, &capturing) && !capturing) {
        context = context_of_thread();
        int is_open = context && !__atomic_load_n(&context->problem, __ATOMIC_ACQUIRE);
        kernel = is_open ? kernel_of(call, context) : NULL;
        collect();
    }
    int status = kernel ? measured(call, context, kernel, stream)
                        : submit(call, call->config.shared, call->config.stream);
    driver.cuThreadExchangeStreamCaptureMode(&relaxed);
    is_inside = 0;
    return status;
}

#define LAUNCH(name, per_thread) \
    int name(Handle f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
             unsigned shared, Handle stream, void **arguments, void **extra) { \
        Call call = {{{gx, gy, gz}, {bx, by, bz}, shared, stream, NULL, 0}, f, arguments, extra, 0, per_thread}; \
        return launch(&call); \
    }
#define LAUNCH_EX(name, per_thread) \
    int name(const Config *config, Handle f, void **arguments, void **extra) { \
        Call call = {*config, f, arguments, extra, 1, per_thread}; \
        return launch(&call); \
    }
#define GRAPH(name) \
    int name(Handle graph, Handle stream) { \
        pthread_once(&once, start); \
        __atomic_add_fetch(&graphs, 1, __ATOMIC_RELAXED); \
        return driver.name(graph, stream); \
    }
#define ENDING(name, type) \
    int name(type argument) { \
        pthread_once(&once, start); \
        finish(); \
        return driver.name(argument); \
    }
LAUNCH(cuLaunchKernel, 0)
LAUNCH(cuLaunchKernel_ptsz, 1)
LAUNCH_EX(cuLaunchKernelEx, 0)
LAUNCH_EX(cuLaunchKernelEx_ptsz, 1)
GRAPH(cuGraphLaunch)
GRAPH(cuGraphLaunch_ptsz)
ENDING(cuDevicePrimaryCtxReset_v2, int)
ENDING(cuDevicePrimaryCtxRelease_v2, int)
ENDING(cuCtxDestroy_v2, Handle)

int cuGetProcAddress(const char *, void **, int, uint64_t);
int cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);

/* What stands here for a function of the driver. */
static void *wrapped(const char *name, void *real) {
#define ENTRY(function, ...) {#function, (void *)function},
    static const struct { const char *name; void *function; } table[] = {FUNCTIONS(ENTRY)};
    for (size_t i = 0; real && i < sizeof table / sizeof *table; i++)
        if (!strcmp(name, table[i].name))
            return table[i].function;
    return real;
}

static int found(int status, const char *symbol, void **function, int version, uint64_t flags) {
    char name[128];
    int is_launch = !strncmp(symbol, "cuLaunchKernel", 14) || !strcmp(symbol, "cuGraphLaunch");
    int is_second = !is_launch && (version >= 12000 || strcmp(symbol, "cuGetProcAddress"));
    int is_per_thread = is_launch && flags & 2; /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
    snprintf(name, sizeof name, "%s%s", symbol, is_per_thread ? "_ptsz" : is_second ? "_v2" : "");
    if (!status && function)
        *function = wrapped(name, *function);
    return status;
}

int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags) {
    pthread_once(&once, start);
    return found(driver.cuGetProcAddress(symbol, function, version, flags), symbol, function, version, flags);
}

int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *state) {
    pthread_once(&once, start);
    return found(driver.cuGetProcAddress_v2(symbol, function, version, flags, state), symbol, function, version, flags);
}

/* The last call must be a jump, as -O2 makes it: RTLD_NEXT goes by the return address. */
void *dlsym(void *restrict handle, const char *restrict symbol) {
    if (symbol[0] == 'c' && symbol[1] == 'u')
        return wrapped(symbol, lookup()(handle, symbol));
    return lookup()(handle, symbol);
}
