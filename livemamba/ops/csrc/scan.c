/* Selective scan and causal convolution on CPUs, forward and backward: a plain C interface for livemamba/ops/native.py.
 *
 * Nothing of torch or Python is needed to build it. The kernels are compiled once for each instruction set, and the
 * best that the processor has is taken at run time, so a wheel may go to another machine.
 */

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

#if defined(_WIN32)
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

#define NO_TARGET
#define TARGET NO_TARGET
#define LANES 4
#define SET(name) plain_##name
#include "one_set.h"

#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2,fma")))
#define LANES 8
#define SET(name) avx2_##name
#include "one_set.h"

#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")))
#define LANES 16
#define SET(name) avx512_##name
#include "one_set.h"
#endif

typedef void (*task)(const void *call, int64_t index, float *scratch);

typedef struct {
    const char *name;
    task scan_forward, scan_backward, conv_forward, conv_backward;
} kernels;

static const kernels sets[] = {
    {"plain", plain_scan_forward, plain_scan_backward, plain_conv_forward, plain_conv_backward},
#if defined(__x86_64__)
    {"avx2", avx2_scan_forward, avx2_scan_backward, avx2_conv_forward, avx2_conv_backward},
    {"avx512", avx512_scan_forward, avx512_scan_backward, avx512_conv_forward, avx512_conv_backward},
#endif
};

/* How many of `sets`, counted from the first, this processor can run. */
static int64_t usable(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 1;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") ? 3 : 2;
#else
    return 1;
#endif
}

/* Torch has its OpenMP runtime loaded for all to see, where it has one that speaks GNU's interface. Its pool of
 * threads is borrowed: a second one would fight with it over the cores. Without it, one thread does the work. */
#if defined(__ELF__)
extern void GOMP_parallel(void (*work)(void *), void *data, unsigned threads, unsigned flags) __attribute__((weak));
#define POOL (GOMP_parallel != NULL)
#else
#define GOMP_parallel(work, data, threads, flags) (work)(data)
#define POOL 0
#endif

typedef struct {
    task run;
    const void *call;
    int64_t count, scratch; /* tasks; floats that one needs */
    int64_t taken, done;    /* changed by every thread */
} job;

static void work(void *data) {
    job *j = data;
    char *memory = malloc(sizeof(float) * (size_t)j->scratch + 64);
    if (!memory) return; /* another thread may have got some; if none has, `done` says so */
    float *scratch = (float *)(memory + 64 - (uintptr_t)memory % 64);
    for (;;) {
        int64_t index = __atomic_fetch_add(&j->taken, 1, __ATOMIC_RELAXED);
        if (index >= j->count) break;
        j->run(j->call, index, scratch);
        __atomic_fetch_add(&j->done, 1, __ATOMIC_RELEASE);
    }
    free(memory);
}

/* Multiply-adds for which it pays to wake one more thread. */
#define WORTH_A_THREAD 32768

/* 0, or -1 if there was no memory. */
static int in_threads(job j, int64_t threads, int64_t operations) {
    threads = at_most(at_most(threads, j.count), 1 + operations / WORTH_A_THREAD);
    if (threads > 1 && POOL) GOMP_parallel(work, &j, (unsigned)threads, 0);
    else if (j.count > 0) work(&j);
    return __atomic_load_n(&j.done, __ATOMIC_ACQUIRE) == j.count ? 0 : -1;
}

static int run_scan(const scan_call *call, task run, int64_t scratch) {
    job j = {run, call, call->batch * parts_of(call->width), scratch, 0, 0};
    return in_threads(j, call->threads, call->batch * call->length * call->width * call->states);
}

static int run_conv(const conv_call *call, task run, int64_t scratch) {
    job j = {run, call, call->batch * parts_of(call->width), scratch, 0, 0};
    return in_threads(j, call->threads, call->batch * call->length * call->width * call->taps);
}

EXPORTED int livemamba_scan_forward(const scan_call *call) {
    return run_scan(call, sets[call->set].scan_forward, 2 * PART * call->states);
}

EXPORTED int livemamba_scan_backward(const scan_call *call) {
    int64_t each_state = 3 * PART + CHUNK * 4 * LINE + LINE;
    return run_scan(call, sets[call->set].scan_backward, each_state * call->states + PART);
}

EXPORTED int livemamba_conv_forward(const conv_call *call) {
    return run_conv(call, sets[call->set].conv_forward, PART * call->taps);
}

EXPORTED int livemamba_conv_backward(const conv_call *call) {
    return run_conv(call, sets[call->set].conv_backward, PART * (2 * call->taps + 1));
}

/* Asked before anything else. */
EXPORTED int livemamba_interface(void) { return INTERFACE; }

/* Sizes that Python must know, and what is usable here. */
EXPORTED void livemamba_layout(int64_t *to) {
    const int64_t values[] = {sizeof(scan_call), sizeof(conv_call), LINE, PART, CHUNK, usable(), POOL};
    memcpy(to, values, sizeof values);
}

EXPORTED const char *livemamba_set_name(int64_t set) { return sets[set].name; }
