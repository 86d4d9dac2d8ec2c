/* Launches as programs of the CUDA runtime do: `program HOW`, with functions of cuGetProcAddress. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void *Handle;
typedef struct { unsigned grid[3], block[3], shared; Handle stream; void *attributes; unsigned count; } Config;
typedef int Launch(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **, void **);
typedef struct { int id, pad; long value[8]; } Attribute;

static int (*address)(const char *, void **, int, uint64_t, int *);
static const char *how;
static Handle module;
static long sums[4];

static void *function(const char *name, uint64_t flags)
{
    void *found = NULL;
    int state = 0;
    return address(name, &found, 12000, flags, &state) ? NULL : found;
}

static void *work(void *unused)
{
    static const char *const names[] = {"chase", "copy", "reuse", "compute"};
    Launch *launch = (Launch *)function("cuLaunchKernel", strcmp(how, "per-thread") ? 0 : 2);
    int (*extended)(const Config *, Handle, void **, void **) = function("cuLaunchKernelEx", 0);
    int (*get)(Handle *, Handle, const char *) = function("cuModuleGetFunction", 0);
    int (*create)(Handle *, unsigned) = function("cuStreamCreate", 0);
    int (*begin)(Handle, int) = function("cuStreamBeginCapture", 0), (*end)(Handle, Handle *) = function("cuStreamEndCapture", 0);
    int (*replay)(Handle, Handle) = function("cuGraphLaunch", 0);
    Attribute cooperative = {2, 0, {1}};
    Handle kernel, stream = NULL, graph;
    if (!strcmp(how, "streams") || !strcmp(how, "capture"))
        create(&stream, 1);
    unsigned blocks = strcmp(how, "few") ? 132 * 32 : 132 / 2;
    for (int turn = 0; turn < 20; turn++)
        for (int i = 0; i < 4; i++) {
            long *sum = sums + i;
            void *arguments[] = {&sum};
            int is_capturing = !strcmp(how, "capture") && turn % 2;
            if (get(&kernel, module, names[i]))
                return (void *)"no kernel";
            if (is_capturing)
                begin(stream, 0);
            Config config = {{blocks, 1, 1}, {128, 1, 1}, 0, stream, &cooperative, 1};
            int status = strcmp(how, "cooperative") ? launch(kernel, blocks, 1, 1, 128, 1, 1, 0, stream, arguments, NULL)
                                                    : extended(&config, kernel, arguments, NULL);
            if (status)
                return (void *)"a launch failed";
            if (is_capturing && (end(stream, &graph) || replay(graph, stream)))
                return (void *)"no graph";
        }
    return unused;
}

int main(int count, char **words)
{
    pthread_t threads[4];
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *problem = NULL;
    how = count > 1 ? words[1] : "";
    if (!library || !(*(void **)&address = dlsym(library, "cuGetProcAddress_v2")))
        return puts("no CUDA"), 0;
    int (*load)(Handle *, const void *) = function("cuModuleLoadData", 0);
    if (load(&module, "profkit_read"))
        return 1;
    int many = strcmp(how, "threads") ? 1 : 4;
    for (int i = 0; i < many; i++)
        pthread_create(threads + i, NULL, work, NULL);
    for (int i = 0; i < many && !problem; i++)
        pthread_join(threads[i], &problem);
    int (*reset)(int) = function("cuDevicePrimaryCtxReset", 0);
    if (!strcmp(how, "reset") && (reset(0) || work(NULL)))
        return 1;
    if (!strcmp(how, "fork") && !fork())
        return 0;
    wait(NULL);
    printf("%s sums %ld %ld %ld %ld\n", problem ? (char *)problem : "done", sums[0], sums[1], sums[2], sums[3]);
    return problem != NULL;
}
