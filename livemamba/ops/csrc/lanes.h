/* LANES floats at once, for one instruction set; included once for each, with SET(name), TARGET and LANES defined.
 *
 * Plain C: the compiler's vectors have the operators of numbers, and comparing two gives all bits or none.
 */

#define vec SET(vec)
#define bits SET(bits)
#define INLINE static inline __attribute__((always_inline, unused)) TARGET

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef uint32_t bits __attribute__((vector_size(4 * LANES)));

/* The first `count` floats at `from`, zeros behind them. */
INLINE vec SET(load)(const float *from, int64_t count) {
    vec values = {0};
    if (count >= LANES) memcpy(&values, from, sizeof values);
    else if (count > 0) memcpy(&values, from, sizeof(float) * (size_t)count);
    return values;
}

INLINE void SET(store)(float *to, vec values, int64_t count) {
    if (count >= LANES) memcpy(to, &values, sizeof values);
    else if (count > 0) memcpy(to, &values, sizeof(float) * (size_t)count);
}

INLINE int SET(all)(bits flags) {
    uint32_t every = ~0u;
    for (int lane = 0; lane < LANES; lane++) every &= flags[lane];
    return every != 0;
}

INLINE float SET(sum)(vec values) {
    float total = 0;
    for (int lane = 0; lane < LANES; lane++) total += values[lane];
    return total;
}

/* exp(x) where SMALLEST <= x <= LARGEST, within 1.1 units in the last place; exactly 1 at 0. Elsewhere: anything.
 *
 * x = n log 2 + r with |r| <= log(2)/2. The polynomial is the one of degree 6 with value and slope 1 at 0 whose
 * largest relative error there is smallest (3e-9). 2^n is put on as an exponent: the large number that rounds to
 * whole ones leaves n in the lowest bits.
 */
#define SMALLEST -87.33f
#define LARGEST 88.72284f
INLINE vec SET(exp_inside)(vec x) {
    vec shifted = x * 1.44269504f + 12582912.0f;
    vec n = shifted - 12582912.0f;
    vec r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    vec tail = r * 1.381454058e-03f + 8.368745446e-03f;
    tail = tail * r + 4.166838899e-02f;
    tail = tail * r + 1.666652113e-01f;
    tail = tail * r + 4.999999404e-01f;
    vec scaled = (r * r * tail + r) + 1.0f;
    return (vec)((bits)scaled + ((bits)shifted << 23));
}

/* exp(x) for any x <= 0, infinity included; 0 where it would be below the smallest normal number, about. */
INLINE vec SET(exp_of_nonpositive)(vec x) {
    return (vec)((bits)SET(exp_inside)(x) & (bits)(x >= SMALLEST));
}

/* exp(x) for every x: too large gives infinity, not a number stays so. */
INLINE vec SET(exp_of_any)(vec x) {
    bits beyond = ~(bits)(x <= LARGEST);
    bits inside = (bits)(x >= SMALLEST) & ~beyond;
    return (vec)(((bits)SET(exp_inside)(x) & inside) | ((bits)(x * FLT_MAX) & beyond));
}

INLINE vec SET(sigmoid)(vec x) { return 1.0f / (1.0f + SET(exp_of_any)(-x)); }

/* z / (1 + exp(-z)); not z times the sigmoid, which rounds once more. */
INLINE vec SET(silu)(vec z) { return z / (1.0f + SET(exp_of_any)(-z)); }

INLINE vec SET(slope_of_silu)(vec z) {
    vec gate = SET(sigmoid)(z);
    return gate * (1.0f + z * (1.0f - gate));
}

/* (channels, columns) to (columns, LINE), channels above `count` zero. */
INLINE void SET(to_columns)(float *to, const float *from, int64_t count, int64_t columns) {
    if (count < LINE) memset(to, 0, sizeof(float) * LINE * columns);
    for (int64_t lane = 0; lane < count; lane++)
        for (int64_t column = 0; column < columns; column++) to[column * LINE + lane] = from[lane * columns + column];
}

INLINE void SET(from_columns)(float *to, const float *from, int64_t count, int64_t columns) {
    for (int64_t lane = 0; lane < count; lane++)
        for (int64_t column = 0; column < columns; column++) to[lane * columns + column] = from[column * LINE + lane];
}
