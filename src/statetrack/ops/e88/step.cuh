// E88 on an NVIDIA GPU, one write a step: what forward.cu and backward.cu share; each is compiled behind this file, and
// this one behind instructions.cuh.
//
// A column of S is run on its own: its S^T k, update and S^T q need no other. LANES lanes of a warp own one together, each
// N / LANES rows in registers. More lanes per column are more warps for the same work, which hide each other's waiting. A
// block holds 32 columns, which are 32 / V heads, on LANES warps. Compiled at first use with these macros:
//
//   N, V        8, 16 or 32
//   LANES       1, 2 or 4, at most N / 4; in the backward pass N / 8
//   HALF        1: q, k, v, out and their gradients are bfloat16, else float32
//   FORM        0: S = tanh(d S + k (v - beta S^T k)^T), 1: the same without tanh, 2: S = d S + beta k v^T (Mamba-2)
//   APPROX      1: tanh in one instruction, good to about 2^-11
//   KEEP        a state is kept every KEEP steps
//   SUB         steps staged, and run again, at a time; divides KEEP
//   NOISY       1: each number of the state moves between two steps, as statetrack/ops/noise.py says
//   FILLED      1: heads are smaller than N x V and filled up with zeros, which get no noise
//   RESIDENT    blocks that should fit on a multiprocessor, which bounds the registers of a lane
//
// Loops over steps are not unrolled: with four steps in a row the backward pass waited for its own code.
// q and k have QH heads, of which each serves H / QH heads of v (Mamba-2's groups); their gradients come a head of v.
// Layouts: q, k (B, T, QH, N); v, out (B, T, H, V); decay, beta (B, T, H) float32; states (B, H, N, V) float32;
// kept (B, H, chunk, N, V) for all chunks but the first, whose state is given. States are kept without their noise.

#if HALF
typedef unsigned short number;
__device__ number narrow(float x) { return to_bfloat16(x); }
#else
typedef float number;
__device__ number narrow(float x) { return x; }
#endif

constexpr int HEADS = 32 / V;               // heads in a block
constexpr int ROWS = N / LANES;             // rows of S a lane holds
constexpr int COLUMNS = 32 / LANES;         // columns in a warp
constexpr int THREADS = 32 * LANES;         // a block
constexpr int PIECE = 16 / sizeof(number);  // numbers in the 16 bytes of one asynchronous copy
static_assert(LANES * 4 <= N && KEEP % SUB == 0, "a lane holds quadruples of rows, a chunk whole pieces");
constexpr int KEYS = SUB * HEADS * N, VALUES = SUB * HEADS * V;
constexpr unsigned ALL = 0xffffffffu;
constexpr int IN_WORD = 32 / V;             // rows of a head whose signs of noise are 32 bits

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

// The sum over the lanes of a column.
__device__ float over_rows(float x) {
#pragma unroll
  for (int apart = COLUMNS; apart < 32; apart *= 2) x += __shfl_xor_sync(ALL, x, apart);
  return x;
}

// Numbers of shared memory that lie side by side.
template <int COUNT>
__device__ void read_some(const float* from, float (&x)[COUNT]) {
  if constexpr (COUNT % 4) {
    const float2 two = *reinterpret_cast<const float2*>(from);
    x[0] = two.x, x[1] = two.y;
  } else {
#pragma unroll
    for (int i = 0; i < COUNT; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + i);
      x[i] = four.x, x[i + 1] = four.y, x[i + 2] = four.z, x[i + 3] = four.w;
    }
  }
}

// S . x, in four independent sums.
__device__ float dot(const float (&S)[ROWS], const float (&x)[ROWS]) {
  float sums[4] = {0, 0, 0, 0};
#pragma unroll
  for (int n = 0; n < ROWS; n++) sums[n % 4] = fmaf(S[n], x[n], sums[n % 4]);
  return over_rows((sums[0] + sums[1]) + (sums[2] + sums[3]));
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

struct Place {  // where this lane works: row = b * H + h, and the tokens of that row are H apart, from `origin` on
  int lane, warp, part, slot, head, column, H, QH, T, row;  // slot: the column among the block's 32
  long long origin;
  bool real;  // the last block may have heads to spare
  __device__ Place(int T, int H, int QH, int rows) : H(H), QH(QH), T(T) {
    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    part = lane / COLUMNS;
    slot = warp * COLUMNS + lane % COLUMNS;
    head = slot / V;
    column = slot % V;
    row = blockIdx.x * HEADS + head;
    real = row < rows;
    if (!real) row = rows - 1;
    origin = origin_of(row);
  }
  __device__ long long origin_of(int row) const { return (long long)(row / H) * T * H + row % H; }
  __device__ long long key_origin_of(int row) const { return (long long)(row / H) * T * QH + row % H / (H / QH); }
  __device__ long long state(long long number) const { return number * N * V + part * ROWS * V + column; }
  __device__ long long state() const { return state(row); }
};

struct Noise {  // what the kernels are handed of it
  const unsigned* words;  // (replica, T, per_step) of 64 signs, as halves of 32
  float size;
  int per_step, rows, n, width;  // rows of a replica, and the true size of a head, which may be filled up
};
struct Signs {  // the noise on one head of a row
  const Noise& noise;
  const unsigned* words;
  long long begin;  // of its numbers among those of its replica
  __device__ Signs(const Noise& noise, int row, int T) : noise(noise) {
    words = noise.words + 2ll * (row / noise.rows) * T * noise.per_step;
    begin = (long long)(row % noise.rows) * noise.n * noise.width;
  }
  // What the number at this row and column gets after step t.
  __device__ float at(int t, int n, int column) const {
    if (n >= noise.n || column >= noise.width) return 0;
    const long long place = begin + n * noise.width + column;
    return words[2ll * t * noise.per_step + place / 32] >> place % 32 & 1 ? noise.size : -noise.size;
  }
  // All signs after step t of the rows from n on, where heads are not filled up: IN_WORD rows to a word.
  template <int COUNT>
  __device__ void load(unsigned (&bits)[COUNT], int t, int n) const {
    const unsigned* from = words + 2ll * t * noise.per_step + begin / 32 + n / IN_WORD;
    if constexpr (COUNT % 4 == 0) {
#pragma unroll
      for (int i = 0; i < COUNT; i += 4) {
        const uint4 four = *reinterpret_cast<const uint4*>(from + i);
        bits[i] = four.x, bits[i + 1] = four.y, bits[i + 2] = four.z, bits[i + 3] = four.w;
      }
    } else {
#pragma unroll
      for (int i = 0; i < COUNT; i++) bits[i] = from[i];
    }
  }
  // The noise of row n of those loaded: its size, with the sign bit that stands at `column`.
  template <int COUNT>
  __device__ float of(const unsigned (&bits)[COUNT], int n, int column) const {
    const unsigned up = bits[n / IN_WORD] << (31 - n % IN_WORD * V - column);
    return __uint_as_float(__float_as_uint(noise.size) ^ (~up & 0x80000000u));
  }
};

// A lane's column at the beginning of step t, with the noise of the step before.
__device__ void add_noise(float (&S)[ROWS], const Noise& noise, const Place& at, int t) {
#if NOISY
  if (t == 0) return;
  const Signs signs(noise, at.row, at.T);
#if FILLED
#pragma unroll
  for (int n = 0; n < ROWS; n++) S[n] += signs.at(t - 1, at.part * ROWS + n, at.column);
#else
  unsigned bits[ROWS / IN_WORD];
  signs.load(bits, t - 1, at.part * ROWS);
#pragma unroll
  for (int n = 0; n < ROWS; n++) S[n] += signs.of(bits, n, at.column);
#endif
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

template <int COUNT>
__device__ void load_column(float (&x)[COUNT], const float* from, int count = COUNT) {
#pragma unroll
  for (int n = 0; n < COUNT; n++) {
    if (n < count) x[n] = from[n * V];
  }
}
template <int COUNT>
__device__ void store_column(const float (&x)[COUNT], float* to) {
#pragma unroll
  for (int n = 0; n < COUNT; n++) to[n * V] = x[n];
}
__device__ void copy_rows(float (&to)[ROWS], const float (&from)[ROWS]) {
#pragma unroll
  for (int n = 0; n < ROWS; n++) to[n] = from[n];
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
