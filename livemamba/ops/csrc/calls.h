/* What one call brings: sizes, and pointers to float32 tensors that Python owns (livemamba/ops/native.py has the
 * same structures; INTERFACE is raised whenever they change).
 *
 * Letters: B batch, L positions, D inner width, S states of each inner channel, K taps, P parts of PART channels.
 */

#ifndef LIVEMAMBA_CALLS_H
#define LIVEMAMBA_CALLS_H

#include <stdint.h>

enum {
    INTERFACE = 1,
    LINE = 16,  /* channels that are worked on together: one cache line of an input's row */
    PART = 128, /* channels of one task; fixed, so that sums don't depend on the number of threads */
    CHUNK = 16, /* positions between two states that are kept for the backward pass */
};

/* A (B, L, channels) tensor whose channels lie side by side; strides in floats. */
typedef struct {
    const float *data;
    int64_t row, position;
} view;

typedef struct {
    int64_t set, threads, batch, length, width, states;
    view x, dt, B, C, z;            /* z.data may be NULL */
    const float *A, *D, *initial;   /* (D, S), (D,), (B, D, S) or NULL */
    const uint8_t *reset;           /* (B, L) or NULL */
    float *y, *final;               /* (B, L, D), (B, D, S) */
    float *starts;                  /* (B, chunks, lines, S, LINE) or NULL: written forward, read backward */
    view grad_y;
    const float *grad_final;        /* (B, D, S) */
    float *grad_x, *grad_dt, *grad_z; /* (B, L, D) */
    float *grad_initial;            /* (B, D, S) */
    float *grad_A, *grad_D;         /* (B, D, S), (B, D): still to be summed over B */
    float *grad_B, *grad_C;         /* (P, B, L, S): still to be summed over P */
} scan_call;

typedef struct {
    int64_t set, threads, batch, length, width, taps;
    view x, window;               /* window is (B, K-1, D) */
    const float *weight, *bias;   /* (D, K), (D,) or NULL */
    const uint8_t *reset;         /* (B, L) or NULL */
    const int64_t *lengths;       /* (B,) or NULL */
    float *y, *last;              /* (B, L, D), (B, K-1, D) */
    view grad_y, grad_last;
    float *grad_x, *grad_window;  /* (B, L, D), (B, K-1, D) */
    float *grad_weight, *grad_bias; /* (B, D, K), (B, D): still to be summed over B */
} conv_call;

static inline int64_t at_most(int64_t value, int64_t limit) { return value < limit ? value : limit; }

static inline int64_t parts_of(int64_t width) { return (width + PART - 1) / PART; }

static inline int64_t lines_of(int64_t width) { return (width + LINE - 1) / LINE; }

#endif
