/* The selective scan of PART channels of one row, for one instruction set; see lanes.h and livemamba/ops/scan.py.
 *
 * Channels lie in the lanes, so a state is S rows of LINE. Source: Mamba (arXiv 2312.00752), section 3.2.
 */

#define VECS (LINE / LANES)
#define EACH(v) for (int v = 0; v < VECS; v++)

/* Where a task is: LINE channels of one row, some positions. `count` of the channels exist. */
typedef struct {
    int64_t row, first, last, channel, count;
} SET(place);
#define place SET(place)

INLINE const float *SET(at)(view values, int64_t row, int64_t position) {
    return values.data + row * values.row + position * values.position;
}

INLINE int SET(starts_afresh)(const scan_call *call, int64_t row, int64_t t) {
    return call->reset && call->reset[row * call->length + t];
}

/* Whether dt * A is below or at zero for all of the chunk, and a number: then a shorter exponential does. */
INLINE int SET(decays)(const scan_call *call, place p, const float *A) {
    bits fine = ~(bits){0};
    for (int64_t column = 0; column < call->states * VECS; column++) {
        vec rate = SET(load)(A + column * LANES, LANES);
        fine &= (bits)(rate <= 0.0f) & (bits)(rate >= -FLT_MAX);
    }
    for (int64_t t = p.first; t < p.last; t++) EACH(v) {
        vec step = SET(load)(SET(at)(call->dt, p.row, t) + p.channel + v * LANES, p.count - v * LANES);
        fine &= (bits)(step >= 0.0f) & (bits)(step <= FLT_MAX);
    }
    return SET(all)(fine);
}

/* Positions into `state` (S, LINE), with their outputs. */
INLINE void SET(forward_chunk)(const scan_call *call, place p, const float *A, float *state, int any_sign) {
    const float *rows[3];
    for (int64_t t = p.first; t < p.last; t++) {
        rows[0] = SET(at)(call->x, p.row, t) + p.channel;
        rows[1] = SET(at)(call->dt, p.row, t) + p.channel;
        rows[2] = call->z.data ? SET(at)(call->z, p.row, t) + p.channel : NULL;
        const float *B = SET(at)(call->B, p.row, t), *C = SET(at)(call->C, p.row, t);
        float *out = call->y + (p.row * call->length + t) * call->width + p.channel;
        vec step[VECS], inflow[VECS], y[VECS];
        EACH(v) {
            int64_t count = p.count - v * LANES;
            vec x = SET(load)(rows[0] + v * LANES, count);
            step[v] = SET(load)(rows[1] + v * LANES, count);
            inflow[v] = step[v] * x;
            y[v] = SET(load)(call->D + p.channel + v * LANES, count) * x;
        }
        if (SET(starts_afresh)(call, p.row, t)) memset(state, 0, sizeof(float) * LINE * call->states);
        for (int64_t s = 0; s < call->states; s++) EACH(v) {
            float *held = state + s * LINE + v * LANES;
            vec exponent = step[v] * SET(load)(A + s * LINE + v * LANES, LANES);
            vec decay = any_sign ? SET(exp_of_any)(exponent) : SET(exp_of_nonpositive)(exponent);
            vec now = decay * SET(load)(held, LANES) + inflow[v] * B[s];
            SET(store)(held, now, LANES);
            y[v] += now * C[s];
        }
        EACH(v) {
            int64_t count = p.count - v * LANES;
            if (rows[2]) y[v] *= SET(silu)(SET(load)(rows[2] + v * LANES, count));
            SET(store)(out + v * LANES, y[v], count);
        }
    }
}

/* The same without outputs; every decay and state of the chunk (T, S, LINE) is kept. */
INLINE void SET(again)(const scan_call *call, place p, const float *A, const float *start, float *states,
                       float *decays, int any_sign) {
    const int64_t size = call->states * LINE;
    const float *before = start;
    for (int64_t t = p.first; t < p.last; t++, before = states, states += size, decays += size) {
        const float *x = SET(at)(call->x, p.row, t) + p.channel, *dt = SET(at)(call->dt, p.row, t) + p.channel;
        const float *B = SET(at)(call->B, p.row, t);
        vec step[VECS], inflow[VECS];
        EACH(v) {
            step[v] = SET(load)(dt + v * LANES, p.count - v * LANES);
            inflow[v] = step[v] * SET(load)(x + v * LANES, p.count - v * LANES);
        }
        int afresh = SET(starts_afresh)(call, p.row, t);
        for (int64_t s = 0; s < call->states; s++) EACH(v) {
            int64_t spot = s * LINE + v * LANES;
            vec exponent = step[v] * SET(load)(A + spot, LANES);
            vec decay = any_sign ? SET(exp_of_any)(exponent) : SET(exp_of_nonpositive)(exponent);
            vec now = inflow[v] * B[s];
            if (!afresh) now = decay * SET(load)(before + spot, LANES) + now;
            SET(store)(decays + spot, decay, LANES);
            SET(store)(states + spot, now, LANES);
        }
    }
}

/* What the backward pass of one task works with; all of it in scratch memory. */
typedef struct {
    float *A, *grad_A, *grad_state; /* (lines, S, LINE) */
    float *grad_D;                  /* (lines, LINE) */
    float *states, *decays;         /* (T, S, LINE) */
    float *grad_B, *grad_C;         /* (T, S, LANES): sums over channels, but for the last step */
    float *zeros;                   /* (S, LINE) */
} SET(desk);
#define desk SET(desk)

/* From the gradients of a position's output to those before the gate, and of the gate; `pre` is what it took. */
INLINE void SET(back_through_gate)(const scan_call *call, place p, int64_t t, const vec *pre) {
    EACH(v) {
        int64_t count = p.count - v * LANES, spot = p.channel + v * LANES;
        vec skip = SET(load)(call->D + spot, count) * SET(load)(SET(at)(call->x, p.row, t) + spot, count);
        vec grad_y = SET(load)(SET(at)(call->grad_y, p.row, t) + spot, count);
        vec slope = SET(slope_of_silu)(SET(load)(SET(at)(call->z, p.row, t) + spot, count));
        float *to = call->grad_z + (p.row * call->length + t) * call->width + spot;
        SET(store)(to, grad_y * (pre[v] + skip) * slope, count);
    }
}

/* One position backwards. `states`, `decays`: after it; `before`: the state it was taken into. */
INLINE void SET(back_one)(const scan_call *call, place p, int64_t t, desk d, const float *before) {
    const int64_t passed = t - p.first, size = call->states * LINE, line = (p.channel % PART) / LINE;
    const float *states = d.states + passed * size, *decays = d.decays + passed * size;
    const float *B = SET(at)(call->B, p.row, t), *C = SET(at)(call->C, p.row, t);
    float *sums_B = d.grad_B + passed * call->states * LANES, *sums_C = d.grad_C + passed * call->states * LANES;
    vec x[VECS], step[VECS], grad_out[VECS], grad_step[VECS], grad_inflow[VECS], pre[VECS];
    EACH(v) {
        int64_t count = p.count - v * LANES, spot = p.channel + v * LANES;
        x[v] = SET(load)(SET(at)(call->x, p.row, t) + spot, count);
        step[v] = SET(load)(SET(at)(call->dt, p.row, t) + spot, count);
        grad_out[v] = SET(load)(SET(at)(call->grad_y, p.row, t) + spot, count);
        if (call->z.data) grad_out[v] *= SET(silu)(SET(load)(SET(at)(call->z, p.row, t) + spot, count));
        grad_step[v] = grad_inflow[v] = pre[v] = (vec){0};
    }
    for (int64_t s = 0; s < call->states; s++) {
        vec sum_B = SET(load)(sums_B + s * LANES, LANES), sum_C = SET(load)(sums_C + s * LANES, LANES);
        EACH(v) {
            int64_t spot = s * LINE + v * LANES, own = line * size + spot;
            vec now = SET(load)(states + spot, LANES);
            vec grad = SET(load)(d.grad_state + own, LANES) + grad_out[v] * C[s];
            pre[v] += now * C[s];
            sum_C += now * grad_out[v];
            sum_B += grad * (step[v] * x[v]);
            grad_inflow[v] += grad * B[s];
            grad *= SET(load)(decays + spot, LANES);
            SET(store)(d.grad_state + own, grad, LANES);
            grad *= SET(load)(before + spot, LANES); /* now that of dt * A, the argument of the exponential */
            grad_step[v] += grad * SET(load)(d.A + own, LANES);
            SET(store)(d.grad_A + own, SET(load)(d.grad_A + own, LANES) + grad * step[v], LANES);
        }
        SET(store)(sums_B + s * LANES, sum_B, LANES);
        SET(store)(sums_C + s * LANES, sum_C, LANES);
    }
    EACH(v) {
        int64_t count = p.count - v * LANES, spot = p.channel + v * LANES;
        int64_t to = (p.row * call->length + t) * call->width + spot;
        vec skip = SET(load)(call->D + spot, count);
        float *grad_D = d.grad_D + line * LINE + v * LANES;
        SET(store)(call->grad_x + to, grad_inflow[v] * step[v] + grad_out[v] * skip, count);
        SET(store)(call->grad_dt + to, grad_step[v] + grad_inflow[v] * x[v], count);
        SET(store)(grad_D, SET(load)(grad_D, LANES) + grad_out[v] * x[v], LANES);
    }
    if (call->z.data) SET(back_through_gate)(call, p, t, pre);
}

INLINE void SET(backward_chunk)(const scan_call *call, place p, desk d, const float *start, int any_sign) {
    const int64_t size = call->states * LINE, line = (p.channel % PART) / LINE;
    SET(again)(call, p, d.A + line * size, start, d.states, d.decays, any_sign);
    for (int64_t t = p.last - 1; t >= p.first; t--) {
        int afresh = SET(starts_afresh)(call, p.row, t);
        const float *before = t == p.first ? start : d.states + (t - 1 - p.first) * size;
        SET(back_one)(call, p, t, d, afresh ? d.zeros : before);
        if (afresh) memset(d.grad_state + line * size, 0, sizeof(float) * size);
    }
}

/* The kept start of the chunk at `first`, for the line at `channel`. */
INLINE float *SET(start_of)(const scan_call *call, place p) {
    int64_t chunks = (call->length + CHUNK - 1) / CHUNK;
    int64_t line = (p.row * chunks + p.first / CHUNK) * lines_of(call->width) + p.channel / LINE;
    return call->starts + line * call->states * LINE;
}

/* Task `index` of B * P; the same line by line: constant counts let the compiler drop what is for the edge. */
TARGET static void SET(scan_forward)(const void *given, int64_t index, float *scratch) {
    const scan_call *call = given;
    const int64_t parts = parts_of(call->width), row = index / parts, begin = index % parts * PART;
    const int64_t end = at_most(begin + PART, call->width), size = call->states * LINE;
    float *A = scratch, *state = scratch + PART * call->states;
    for (int64_t channel = begin; channel < end; channel += LINE) {
        int64_t count = at_most(end - channel, LINE), line = (channel - begin) / LINE;
        int64_t from = (row * call->width + channel) * call->states;
        SET(to_columns)(A + line * size, call->A + channel * call->states, count, call->states);
        if (call->initial) SET(to_columns)(state + line * size, call->initial + from, count, call->states);
        else memset(state + line * size, 0, sizeof(float) * size);
    }
    for (int64_t first = 0; first < call->length; first += CHUNK)
        for (int64_t channel = begin; channel < end; channel += LINE) {
            int64_t line = (channel - begin) / LINE;
            place p = {row, first, at_most(first + CHUNK, call->length), channel, at_most(end - channel, LINE)};
            float *own_A = A + line * size, *own = state + line * size;
            if (call->starts) memcpy(SET(start_of)(call, p), own, sizeof(float) * size);
            if (p.count < LINE) {
                SET(forward_chunk)(call, p, own_A, own, 1);
            } else {
                p.count = LINE;
                if (SET(decays)(call, p, own_A)) SET(forward_chunk)(call, p, own_A, own, 0);
                else SET(forward_chunk)(call, p, own_A, own, 1);
            }
        }
    for (int64_t channel = begin; channel < end; channel += LINE)
        SET(from_columns)(call->final + (row * call->width + channel) * call->states,
                          state + (channel - begin) / LINE * size, at_most(end - channel, LINE), call->states);
}

INLINE desk SET(laid_out)(const scan_call *call, float *scratch) {
    const int64_t S = call->states;
    desk d;
    d.A = scratch;
    d.grad_A = d.A + PART * S;
    d.grad_state = d.grad_A + PART * S;
    d.states = d.grad_state + PART * S;
    d.decays = d.states + CHUNK * LINE * S;
    d.grad_B = d.decays + CHUNK * LINE * S;
    d.grad_C = d.grad_B + CHUNK * LANES * S;
    d.zeros = d.grad_C + CHUNK * LANES * S;
    d.grad_D = d.zeros + LINE * S;
    memset(d.grad_A, 0, sizeof(float) * PART * S);
    memset(d.zeros, 0, sizeof(float) * LINE * S);
    memset(d.grad_D, 0, sizeof(float) * PART);
    return d;
}

/* Sum up over this task's channels what the chunk has for B and C. */
INLINE void SET(sum_up)(const scan_call *call, int64_t index, int64_t row, int64_t first, int64_t last, desk d) {
    int64_t part = index % parts_of(call->width), S = call->states;
    int64_t to = ((part * call->batch + row) * call->length + first) * S;
    for (int64_t spot = 0; spot < (last - first) * S; spot++) {
        call->grad_B[to + spot] = SET(sum)(SET(load)(d.grad_B + spot * LANES, LANES));
        call->grad_C[to + spot] = SET(sum)(SET(load)(d.grad_C + spot * LANES, LANES));
    }
}

INLINE void SET(backward_line)(const scan_call *call, place p, desk d, const float *own_A) {
    const float *start = SET(start_of)(call, p);
    if (p.count < LINE) {
        SET(backward_chunk)(call, p, d, start, 1);
        return;
    }
    p.count = LINE;
    if (SET(decays)(call, p, own_A)) SET(backward_chunk)(call, p, d, start, 0);
    else SET(backward_chunk)(call, p, d, start, 1);
}

TARGET static void SET(scan_backward)(const void *given, int64_t index, float *scratch) {
    const scan_call *call = given;
    const int64_t parts = parts_of(call->width), row = index / parts, begin = index % parts * PART;
    const int64_t end = at_most(begin + PART, call->width), S = call->states, size = S * LINE;
    desk d = SET(laid_out)(call, scratch);
    for (int64_t channel = begin; channel < end; channel += LINE) {
        int64_t count = at_most(end - channel, LINE), line = (channel - begin) / LINE;
        SET(to_columns)(d.A + line * size, call->A + channel * S, count, S);
        SET(to_columns)(d.grad_state + line * size, call->grad_final + (row * call->width + channel) * S, count, S);
    }
    for (int64_t first = (call->length - 1) / CHUNK * CHUNK; first >= 0 && call->length > 0; first -= CHUNK) {
        int64_t last = at_most(first + CHUNK, call->length);
        memset(d.grad_B, 0, sizeof(float) * CHUNK * LANES * S);
        memset(d.grad_C, 0, sizeof(float) * CHUNK * LANES * S);
        for (int64_t channel = begin; channel < end; channel += LINE) {
            place p = {row, first, last, channel, at_most(end - channel, LINE)};
            SET(backward_line)(call, p, d, d.A + (channel - begin) / LINE * size);
        }
        SET(sum_up)(call, index, row, first, last, d);
    }
    for (int64_t channel = begin; channel < end; channel += LINE) {
        int64_t count = at_most(end - channel, LINE), line = (channel - begin) / LINE;
        int64_t to = row * call->width + channel;
        SET(from_columns)(call->grad_A + to * S, d.grad_A + line * size, count, S);
        SET(from_columns)(call->grad_initial + to * S, d.grad_state + line * size, count, S);
        memcpy(call->grad_D + to, d.grad_D + line * LINE, sizeof(float) * count);
    }
}
