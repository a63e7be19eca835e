/* The causal convolution of PART channels of one row, for one instruction set; see lanes.h, livemamba/ops/conv.py. */

/* The inputs before position 0 are counted backwards: -1 is the window's newest, -(K-1) its oldest. */
INLINE const float *SET(input)(const conv_call *call, int64_t row, int64_t position) {
    if (position < 0) return SET(at)(call->window, row, call->taps - 1 + position);
    return SET(at)(call->x, row, position);
}

INLINE float *SET(grad_of_input)(const conv_call *call, int64_t row, int64_t position) {
    if (position < 0) return call->grad_window + (row * (call->taps - 1) + call->taps - 1 + position) * call->width;
    return call->grad_x + (row * call->length + position) * call->width;
}

/* The oldest input that position t may see: `since`, moved on if t is a reset. */
INLINE int64_t SET(moved_on)(const conv_call *call, int64_t row, int64_t t, int64_t since) {
    return call->reset && call->reset[row * call->length + t] ? t : since;
}

/* What is summed up for LINE channels at t: the inputs from `since` on, times `weight` (K, LINE), plus the bias. */
INLINE void SET(summed)(const conv_call *call, place p, int64_t t, int64_t since, const float *weight, vec *total) {
    EACH(v) {
        total[v] = (vec){0};
        if (call->bias) total[v] = SET(load)(call->bias + p.channel + v * LANES, p.count - v * LANES);
    }
    for (int64_t tap = 0; tap < call->taps; tap++) {
        int64_t position = t - (call->taps - 1) + tap;
        if (position < since) continue;
        const float *from = SET(input)(call, p.row, position) + p.channel;
        EACH(v) {
            vec seen = SET(load)(from + v * LANES, p.count - v * LANES);
            total[v] += seen * SET(load)(weight + tap * LINE + v * LANES, LANES);
        }
    }
}

INLINE void SET(conv_one)(const conv_call *call, place p, int64_t t, int64_t since, const float *weight) {
    vec total[VECS];
    float *to = call->y + (p.row * call->length + t) * call->width + p.channel;
    SET(summed)(call, p, t, since, weight, total);
    EACH(v) SET(store)(to + v * LANES, SET(silu)(total[v]), p.count - v * LANES);
}

/* How many positions of a row count. */
INLINE int64_t SET(counted)(const conv_call *call, int64_t row) {
    int64_t length = call->lengths ? at_most(call->lengths[row], call->length) : call->length;
    return length < 0 ? 0 : length;
}

/* The oldest input that a position after all that count may see. */
INLINE int64_t SET(seen_at_end)(const conv_call *call, int64_t row) {
    int64_t since = 1 - call->taps;
    for (int64_t t = 0; t < SET(counted)(call, row); t++) since = SET(moved_on)(call, row, t, since);
    return since;
}

/* (K, LINE) of each line of the part. */
INLINE void SET(gather_weights)(const conv_call *call, int64_t begin, int64_t end, float *weights) {
    for (int64_t channel = begin; channel < end; channel += LINE)
        SET(to_columns)(weights + (channel - begin) * call->taps, call->weight + channel * call->taps,
                        at_most(end - channel, LINE), call->taps);
}

TARGET static void SET(conv_forward)(const void *given, int64_t index, float *scratch) {
    const conv_call *call = given;
    const int64_t parts = parts_of(call->width), row = index / parts, begin = index % parts * PART;
    const int64_t end = at_most(begin + PART, call->width), past = call->taps - 1;
    SET(gather_weights)(call, begin, end, scratch);
    int64_t since = -past;
    for (int64_t t = 0; t < call->length; t++) {
        since = SET(moved_on)(call, row, t, since);
        for (int64_t channel = begin; channel < end; channel += LINE) {
            const float *weight = scratch + (channel - begin) * call->taps;
            place p = {row, t, t + 1, channel, at_most(end - channel, LINE)};
            if (p.count < LINE) {
                SET(conv_one)(call, p, t, since, weight);
            } else {
                p.count = LINE;
                SET(conv_one)(call, p, t, since, weight);
            }
        }
    }
    since = SET(seen_at_end)(call, row);
    for (int64_t slot = 0; slot < past; slot++) {
        int64_t position = SET(counted)(call, row) - past + slot;
        float *to = call->last + (row * past + slot) * call->width + begin;
        if (position < since) memset(to, 0, sizeof(float) * (end - begin));
        else memcpy(to, SET(input)(call, row, position) + begin, sizeof(float) * (end - begin));
    }
}

/* `weight`, `grad_weight` (K, LINE), `grad_bias` (LINE): of this line. */
INLINE void SET(back_conv_one)(const conv_call *call, place p, int64_t t, int64_t since, const float *weight,
                               float *grad_weight, float *grad_bias) {
    vec grad[VECS];
    const float *grad_y = SET(at)(call->grad_y, p.row, t) + p.channel;
    SET(summed)(call, p, t, since, weight, grad);
    EACH(v) {
        grad[v] = SET(slope_of_silu)(grad[v]) * SET(load)(grad_y + v * LANES, p.count - v * LANES);
        SET(store)(grad_bias + v * LANES, SET(load)(grad_bias + v * LANES, LANES) + grad[v], LANES);
    }
    for (int64_t tap = 0; tap < call->taps; tap++) {
        int64_t position = t - (call->taps - 1) + tap;
        if (position < since) continue;
        const float *from = SET(input)(call, p.row, position) + p.channel;
        float *to = SET(grad_of_input)(call, p.row, position) + p.channel;
        EACH(v) {
            int64_t count = p.count - v * LANES, spot = tap * LINE + v * LANES;
            vec of_tap = grad[v] * SET(load)(from + v * LANES, count);
            vec of_input = grad[v] * SET(load)(weight + spot, LANES);
            SET(store)(grad_weight + spot, SET(load)(grad_weight + spot, LANES) + of_tap, LANES);
            SET(store)(to + v * LANES, SET(load)(to + v * LANES, count) + of_input, count);
        }
    }
}

/* The inputs' gradients as the last window alone has them. */
INLINE void SET(back_from_window)(const conv_call *call, int64_t row, int64_t begin, int64_t end) {
    const int64_t past = call->taps - 1, since = SET(seen_at_end)(call, row), counted = SET(counted)(call, row);
    for (int64_t position = -past; position < call->length; position++) {
        float *to = SET(grad_of_input)(call, row, position) + begin;
        int64_t slot = position - counted + past;
        if (slot >= 0 && slot < past && position >= since)
            memcpy(to, SET(at)(call->grad_last, row, slot) + begin, sizeof(float) * (end - begin));
        else memset(to, 0, sizeof(float) * (end - begin));
    }
}

TARGET static void SET(conv_backward)(const void *given, int64_t index, float *scratch) {
    const conv_call *call = given;
    const int64_t parts = parts_of(call->width), row = index / parts, begin = index % parts * PART;
    const int64_t end = at_most(begin + PART, call->width), taps = call->taps;
    float *weights = scratch, *grad_weights = weights + PART * taps, *grad_biases = grad_weights + PART * taps;
    SET(gather_weights)(call, begin, end, weights);
    memset(grad_weights, 0, sizeof(float) * PART * (taps + 1));
    SET(back_from_window)(call, row, begin, end);
    int64_t since = 1 - taps;
    for (int64_t t = 0; t < call->length; t++) {
        since = SET(moved_on)(call, row, t, since);
        for (int64_t channel = begin; channel < end; channel += LINE) {
            int64_t line = (channel - begin) / LINE;
            float *weight = weights + line * LINE * taps, *grad_weight = grad_weights + line * LINE * taps;
            place p = {row, t, t + 1, channel, at_most(end - channel, LINE)};
            if (p.count < LINE) {
                SET(back_conv_one)(call, p, t, since, weight, grad_weight, grad_biases + line * LINE);
            } else {
                p.count = LINE;
                SET(back_conv_one)(call, p, t, since, weight, grad_weight, grad_biases + line * LINE);
            }
        }
    }
    for (int64_t channel = begin; channel < end; channel += LINE) {
        int64_t to = row * call->width + channel, count = at_most(end - channel, LINE);
        SET(from_columns)(call->grad_weight + to * taps, grad_weights + (channel - begin) * taps, count, taps);
        memcpy(call->grad_bias + to, grad_biases + (channel - begin), sizeof(float) * count);
    }
}
