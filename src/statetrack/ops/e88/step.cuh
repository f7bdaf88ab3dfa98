// E88 on an NVIDIA GPU, one write a step: what forward.cu and backward.cu share; each is compiled behind this file, and
// this one behind instructions.cuh and columns.cuh.
//
// More lanes per column are more warps for the same work, which hide each other's waiting. Compiled at first use with the
// macros that columns.cuh names, and with these:
//
//   LANES       in the backward pass N / 8 at most
//   FORM        0: S = tanh(d S + k (v - beta S^T k)^T), 1: the same without tanh, 2: S = d S + beta k v^T (Mamba-2)
//   APPROX      1: tanh in one instruction, good to about 2^-11
//   KEEP        a state is kept every KEEP steps
//   SUB         steps staged, and run again, at a time; divides KEEP
//   RESIDENT    blocks that should fit on a multiprocessor, which bounds the registers of a lane
//
// Loops over steps are not unrolled: with four steps in a row the backward pass waited for its own code.
// q and k have QH heads, of which each serves H / QH heads of v (Mamba-2's groups); their gradients come a head of v.
// Layouts: q, k (B, T, QH, N); v, out (B, T, H, V); decay, beta (B, T, H) float32;
// kept (B, H, chunk, N, V) for all chunks but the first, whose state is given.

constexpr int PIECE = 16 / sizeof(number);  // numbers in the 16 bytes of one asynchronous copy
static_assert(LANES * 4 <= N && KEEP % SUB == 0, "a lane holds quadruples of rows, a chunk whole pieces");
constexpr int KEYS = SUB * HEADS * N, VALUES = SUB * HEADS * V;

// z holds SCALE times the argument x and becomes tanh(x) = 1 - 2 / (1 + 2^z), with absolute error below 1e-6. The
// special-function unit is the bottleneck, so four numbers share one reciprocal, 1/a = bcd / abcd with a = -(1 + 2^z) / 2,
// where all arguments of the warp are surely small: below 9.5, where four factors of e^19 do not overflow. Else each has its own,
// and the result is -1 or 1 to the last bit where tanh is: there 1 - tanh^2 must be 0, or saturated states would pass on
// huge gradients.
#if FORM == 0 && !APPROX
constexpr float SCALE = 2.8853900817779268f;  // 2 / ln 2
#else
constexpr float SCALE = 1.0f;
#endif
__device__ void saturate(float (&z)[ROWS], bool small) {
#if APPROX
#pragma unroll
  for (int n = 0; n < ROWS; n++) z[n] = tanh_fast(z[n]);
#else
  if (small) {
#pragma unroll
    for (int n = 0; n < ROWS; n += 4) {
      float a[4];
#pragma unroll
      for (int i = 0; i < 4; i++) a[i] = fmaf(exp2_fast(z[n + i]), -0.5f, -0.5f);
      const float ab = a[0] * a[1], cd = a[2] * a[3];
      const float inverse = reciprocal(ab * cd);
      const float by_ab = inverse * cd, by_cd = inverse * ab;
      z[n] = fmaf(by_ab, a[1], 1.0f);
      z[n + 1] = fmaf(by_ab, a[0], 1.0f);
      z[n + 2] = fmaf(by_cd, a[3], 1.0f);
      z[n + 3] = fmaf(by_cd, a[2], 1.0f);
    }
  } else {
#pragma unroll
    for (int n = 0; n < ROWS; n++) z[n] = fmaf(-2.0f, reciprocal(1.0f + exp2_fast(z[n])), 1.0f);
  }
#endif
}

// S <- f(d S + k e^T); `small` as in saturate.
__device__ void step(float (&S)[ROWS], const float (&key)[ROWS], float e, float d, bool small) {
  e *= SCALE;
  d *= SCALE;
#pragma unroll
  for (int n = 0; n < ROWS; n++) S[n] = fmaf(d, S[n], key[n] * e);
#if FORM == 0
  saturate(S, small);
#endif
}

constexpr int Q_AT = KEYS + VALUES;  // from k to q, and from v to o, where they are staged

// What a block keeps in shared memory of SUB steps at a time, twice: one is read while the other is filled.
struct Sequences {
  float k[KEYS], v[VALUES], q[KEYS], o[VALUES];
};
struct Staged {
  Sequences given[2];
  float decay[2][SUB * HEADS], beta[2][SUB * HEADS];
};

// A lane's place in what is staged, at the first step until it moves.
struct Reader {
  const float *key, *own, *scalars;  // its rows of k; its columns of v; decay, with beta behind
  __device__ Reader(const Staged& staged, int buffer, int head, int row, int column) {
    key = staged.given[buffer].k + head * N + row;
    own = staged.given[buffer].v + column;
    scalars = staged.decay[buffer] + head;
  }
  __device__ void move(int steps) {
    key += steps * HEADS * N;
    own += steps * 32;
    scalars += steps * HEADS;
  }
  __device__ float value() const { return *own; }
  __device__ float decay() const { return *scalars; }
  __device__ float beta() const { return scalars[2 * SUB * HEADS]; }
};

// A lane's share in bringing k and q, or v and o (the gradient of out), from global to shared memory, 16 bytes at a time.
// float32 is copied in the background. bfloat16 is loaded, held in registers while the steps before are worked on, and
// widened where it lands. Numbers of such parts fit into 32 bits on any card.
template <int WIDTH>
struct Pair {
  static constexpr int ROW = WIDTH / PIECE, OF_STEP = HEADS * ROW, OF_ONE = SUB * OF_STEP;  // parts of a row, and so on
  static constexpr int COUNT = (2 * OF_ONE + 31) / 32;                                      // parts of a lane
  int lane, T;
  unsigned first, apart;  // this lane's part of step 0, and how far it is to the next step's
#if HALF
  uint4 held[COUNT];
#endif
  __device__ Pair(const Place& at, bool keyed, int rows) : lane(at.lane), T(at.T) {
    const int row = min(blockIdx.x * HEADS + lane / ROW % HEADS, rows - 1);
    first = (keyed ? at.key_origin_of(row) : at.origin_of(row)) * ROW + lane % ROW;
    apart = (keyed ? at.QH : at.H) * ROW;
  }
  // SUB steps from t0 on, of the first of the pair or of both. Steps past the end repeat the last one and are never run.
  __device__ void fetch(float* to, const number* one, const number* other, bool both, int t0) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
      const int j = lane + 32 * i;
      const bool second = j >= OF_ONE;
      if (j < 2 * OF_ONE && (both || !second)) {
        const int t = min(t0 + j % OF_ONE / OF_STEP, T - 1);
        const uint4* from = reinterpret_cast<const uint4*>(second ? other : one) + (first + t * apart);
#if HALF
        held[i] = *from;
#else
        copy_16(to + place(j), from);
#endif
      }
    }
  }
  static __device__ int place(int j) { return (j >= OF_ONE ? Q_AT : 0) + j % OF_ONE * PIECE; }
#if HALF
  __device__ void land(float* to) const {
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
      const int j = lane + 32 * i;
      if (j < 2 * OF_ONE) {
        float4* wide = reinterpret_cast<float4*>(to + place(j));
        wide[0] = widened(held[i].x, held[i].y);
        wide[1] = widened(held[i].z, held[i].w);
      }
    }
  }
  static __device__ float4 widened(unsigned x, unsigned y) {
    return make_float4(__uint_as_float(x << 16), __uint_as_float(x & 0xffff0000u), __uint_as_float(y << 16),
                       __uint_as_float(y & 0xffff0000u));
  }
#endif
};

// The same for all that is staged. The first warp brings k, q and decay, the second, or the same, v, o and beta.
struct Feed {
  Staged& staged;
  Pair<N> keys;
  Pair<V> values;
  unsigned scalar;  // of this lane, at step 0
  int lane, warp, T, H;
  __device__ Feed(Staged& staged, const Place& at, int rows)
      : staged(staged), keys(at, true, rows), values(at, false, rows), lane(at.lane), warp(at.warp), T(at.T), H(at.H) {
    scalar = at.origin_of(min(blockIdx.x * HEADS + lane % HEADS, rows - 1));
  }
  __device__ bool brings_keys() const { return warp == 0; }
  __device__ bool brings_values() const { return warp == 1 % LANES; }
  __device__ void fetch_keys(int buffer, const number* k, const number* q, const float* decay, bool both, int t0) {
    if (!brings_keys()) return;
    keys.fetch(staged.given[buffer].k, k, q, both, t0);
    fetch_scalars(staged.decay[buffer], decay, t0);
  }
  __device__ void fetch_values(int buffer, const number* v, const number* o, const float* beta, bool both, int t0) {
    if (!brings_values()) return;
    values.fetch(staged.given[buffer].v, v, o, both, t0);
    fetch_scalars(staged.beta[buffer], beta, t0);
  }
  __device__ void fetch_scalars(float* to, const float* from, int t0) const {
    if (lane < SUB * HEADS) copy_4(to + lane, from + (scalar + min(t0 + lane / HEADS, T - 1) * H));
  }
  // What was asked for is here, and every warp of the block has done what it did before.
  __device__ void arrive(int buffer) const {
#if HALF
    if (brings_keys()) keys.land(staged.given[buffer].k);
    if (brings_values()) values.land(staged.given[buffer].v);
#endif
    wait_for_copies();
    __syncthreads();
  }
};

// What bounds the arguments of tanh in a step: |d S + k e| <= |d| max |S| + |e| max |k|.
struct Bounds {
  float key, state, most;
  // A state that was given may be any: infinity, which times a decay of 0 is not a number, and so not small either.
  __device__ Bounds(bool given, const Noise& noise) : key(0) {
    most = NOISY ? 1.0f + noise.size : 1.0f;
    state = given ? __uint_as_float(0x7f800000u) : most;
  }
  // The largest of the keys that are staged, in all of a warp; what is not a number counts as larger.
  __device__ void look_at(const float* keys, int lane) {
#if FORM == 0 && !APPROX
    unsigned most = 0;
#pragma unroll
    for (int j = lane; j < KEYS / 4; j += 32) {
      const float4 four = reinterpret_cast<const float4*>(keys)[j];
      most = max(max(most, size_of(four.x)), max(size_of(four.y), max(size_of(four.z), size_of(four.w))));
    }
    key = __uint_as_float(__reduce_max_sync(ALL, most));
#endif
  }
  static __device__ unsigned size_of(float x) { return __float_as_uint(x) & 0x7fffffffu; }  // in order, as whole numbers
  // Whether all arguments of a warp are surely small in this step; what is not a number is not.
  __device__ bool small(float e, float d) {
#if FORM == 0 && !APPROX
    const bool is = fmaf(fabsf(e), key, fabsf(d) * state) < 9.5f;
    state = most;
    return __all_sync(ALL, is);
#else
    return true;
#endif
  }
};

// e, of which k e^T is written.
__device__ float error_of(const float (&S)[ROWS], const float (&key)[ROWS], float v, float beta) {
#if FORM == 2
  return beta * v;
#else
  return fmaf(-beta, dot(S, key), v);
#endif
}

// Kept states. With bfloat16 inputs and tanh a number of one, which lies in [-1, 1], takes 16 bits: its nearest multiple of
// 2^-14, 64 times as fine as a bfloat16 just below 1 (but coarser than one below 2^-6), and twice as many states fit into
// the same memory. Two rows share 32 bits. Added to MIDDLE, whole numbers up to 2^14 stand in the last 16 bits of the sum.
// What is not a number becomes one.
#if HALF && FORM == 0
constexpr int IN_ONE = 2;
constexpr float MIDDLE = 12582912.0f + 32768.0f, UNIT = 1.0f / 16384;
__device__ void pack(float (&kept)[ROWS / IN_ONE], const float (&S)[ROWS]) {
#pragma unroll
  for (int n = 0; n < ROWS; n += 2) {
    const unsigned low = __float_as_uint(fmaf(S[n], 1 / UNIT, MIDDLE));
    const unsigned high = __float_as_uint(fmaf(S[n + 1], 1 / UNIT, MIDDLE));
    kept[n / 2] = __uint_as_float(__byte_perm(low, high, 0x5410));  // the last two bytes of each
  }
}
__device__ void unpack(float (&S)[ROWS], const float (&kept)[ROWS]) {
  const unsigned above = __float_as_uint(MIDDLE);
#pragma unroll
  for (int n = 0; n < ROWS; n += 2) {
    const unsigned two = __float_as_uint(kept[n / 2]);
    S[n] = fmaf(__uint_as_float(__byte_perm(two, above, 0x7610)), UNIT, -MIDDLE * UNIT);
    S[n + 1] = fmaf(__uint_as_float(__byte_perm(two, above, 0x7632)), UNIT, -MIDDLE * UNIT);
  }
}
#else
constexpr int IN_ONE = 1;
__device__ void pack(float (&kept)[ROWS], const float (&S)[ROWS]) { copy_rows(kept, S); }
__device__ void unpack(float (&S)[ROWS], const float (&kept)[ROWS]) { copy_rows(S, kept); }
#endif

// Where this lane's part of the state before a chunk is kept, and its numbers there.
__device__ long long kept_at(const Place& at, int chunk) {
  const long long states = (long long)at.row * ((at.T - 1) / KEEP) + chunk - 1;
  return (states * N + at.part * ROWS) / IN_ONE * V + at.column;
}
