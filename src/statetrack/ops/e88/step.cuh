// E88 on an NVIDIA GPU, one write a step: what forward.cu and backward.cu share; each is compiled behind this file, and
// this one behind instructions.cuh.
//
// A column of S is run on its own: its S^T k, update and S^T q need no other. LANES lanes of a warp own one together, each
// N / LANES rows in registers. More lanes a column are more warps for the same work, which hide each other's waiting. A
// block holds 32 columns, which are 32 / V heads, on LANES warps. Compiled at first use with these macros:
//
//   N, V        8, 16 or 32
//   LANES       1, 2 or 4, at most N / 4; in the backward pass N / 8
//   HALF        1: q, k, v, out and their gradients are bfloat16, else float32
//   FORM        0: S = tanh(d S + k (v - beta S^T k)^T), 1: the same without tanh, 2: S = d S + beta k v^T (Mamba-2)
//   APPROX      1: tanh in one instruction, good to about 2^-11
//   KEEP        a state is kept every KEEP steps
//   SUB         steps staged, and run again, at a time; divides KEEP
//   RESIDENT    blocks that should fit on a multiprocessor, which bounds the registers of a lane
//
// Loops over steps are not unrolled: with four steps in a row the backward pass waited for its own code.
// q and k have QH heads, of which each serves H / QH heads of v (Mamba-2's groups); their gradients come a head of v.
// Layouts: q, k (B, T, QH, N); v, out (B, T, H, V); decay, beta (B, T, H) float32; states (B, H, N, V) float32;
// kept (B, H, chunk, N, V).

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

// z holds SCALE times the argument x and becomes tanh(x) = 1 - 2 / (1 + 2^z), with absolute error below 1e-6. The
// special-function unit is the bottleneck, so four numbers may share one reciprocal: 1/a = bcd / abcd. From x = 9.5 on
// the result rounds to 1, and four factors of e^19 do not overflow. EXACT spends a reciprocal on each number, and is -1
// or 1 to the last bit where tanh is: there 1 - tanh^2 must be 0, or saturated states would pass on huge gradients.
#if FORM == 0 && !APPROX
constexpr float SCALE = 2.8853900817779268f;  // 2 / ln 2
#else
constexpr float SCALE = 1.0f;
#endif
template <bool EXACT>
__device__ void saturate(float (&z)[ROWS]) {
#if APPROX
#pragma unroll
  for (int n = 0; n < ROWS; n++) z[n] = tanh_fast(z[n]);
#else
  if constexpr (EXACT) {
#pragma unroll
    for (int n = 0; n < ROWS; n++) z[n] = fmaf(-2.0f, reciprocal(1.0f + exp2_fast(z[n])), 1.0f);
  } else {
#pragma unroll
    for (int n = 0; n < ROWS; n += 4) {
      float a[4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const float x = min_or_nan(z[n + i], 9.5f * SCALE);
        a[i] = 1.0f + exp2_fast(x);
      }
      const float ab = a[0] * a[1], cd = a[2] * a[3];
      const float inverse = -2.0f * reciprocal(ab * cd);
      const float by_ab = inverse * cd, by_cd = inverse * ab;
      z[n] = fmaf(by_ab, a[1], 1.0f);
      z[n + 1] = fmaf(by_ab, a[0], 1.0f);
      z[n + 2] = fmaf(by_cd, a[3], 1.0f);
      z[n + 3] = fmaf(by_cd, a[2], 1.0f);
    }
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

// S <- f(d S + k e^T)
template <bool EXACT>
__device__ void step(float (&S)[ROWS], const float (&key)[ROWS], float e, float d) {
  e *= SCALE;
  d *= SCALE;
#pragma unroll
  for (int n = 0; n < ROWS; n++) S[n] = fmaf(d, S[n], key[n] * e);
#if FORM == 0
  saturate<EXACT>(S);
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

constexpr int K_AT = 0, V_AT = KEYS, Q_AT = KEYS + VALUES, O_AT = 2 * KEYS + VALUES, END = 2 * KEYS + 2 * VALUES;

// What a block keeps in shared memory of SUB steps at a time. Copies arrive while the steps before them are worked on;
// bfloat16 arrives in `raw` and is widened once, rather than at every use.
struct Sequences {
  float k[KEYS], v[VALUES], q[KEYS], o[VALUES];
};
struct Staged {
#if HALF
  number raw[2][END];
  Sequences wide;
#else
  Sequences both[2];
#endif
  float decay[2][SUB * HEADS], beta[2][SUB * HEADS];

  template <int UNTIL>  // the sequences that are asked for, up to this place
  __device__ Sequences& ready(int buffer) {
#if HALF
    float* to = wide.k;
#pragma unroll
    for (int from = 0; from < UNTIL; from += 4 * THREADS) {
      const int i = from + threadIdx.x * 4;
      if (UNTIL % (4 * THREADS) && i >= UNTIL) break;
      const uint2 two = *reinterpret_cast<const uint2*>(raw[buffer] + i);
      *reinterpret_cast<float4*>(to + i) =
          make_float4(__uint_as_float(two.x << 16), __uint_as_float(two.x & 0xffff0000u), __uint_as_float(two.y << 16),
                      __uint_as_float(two.y & 0xffff0000u));
    }
    __syncthreads();
    return wide;
#else
    return both[buffer];
#endif
  }
  __device__ number* place(int buffer, int offset) {
#if HALF
    return raw[buffer] + offset;
#else
    return both[buffer].k + offset;
#endif
  }
};

// A lane's place in what is staged, at the first step until it moves.
struct Reader {
  const float *key, *own, *scalars;  // its rows of k; its columns of v; decay, with beta behind
  __device__ Reader(const Sequences& given, const Staged& staged, int buffer, int head, int row, int column) {
    key = given.k + head * N + row;
    own = given.v + column;
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

// The copies of this lane into shared memory: of sequences 16 bytes at a time, of decay and beta a number. Numbers of
// such pieces fit into 32 bits on any card.
struct Feed {
  int key_step, value_step, scalar_step, T;    // the first step, of SUB, that it copies a part of
  unsigned key, value, scalar;                 // that part, were the sequence to begin with the SUB steps
  unsigned keys, values, scalars;              // parts from a step to the next
  static constexpr int KEY_ROW = N / PIECE, VALUE_ROW = V / PIECE;  // parts in a row
  __device__ Feed(const Place& at, int rows) : T(at.T) {
    auto row = [&](int head) { return min(blockIdx.x * HEADS + head % HEADS, rows - 1); };
    key_step = at.lane / (KEY_ROW * HEADS);
    key = at.key_origin_of(row(at.lane / KEY_ROW)) * KEY_ROW + at.lane % KEY_ROW;
    keys = at.QH * KEY_ROW;
    value_step = at.lane / (VALUE_ROW * HEADS);
    value = at.origin_of(row(at.lane / VALUE_ROW)) * VALUE_ROW + at.lane % VALUE_ROW;
    values = at.H * VALUE_ROW;
    scalar_step = at.lane / HEADS;
    scalar = at.origin_of(row(at.lane));
    scalars = at.H;
  }
  // Copy SUB steps from t0 on without waiting. Steps past the end repeat the last one and are never used.
  template <int WIDTH, bool KEYED>
  __device__ void copy(number* to, const number* from, int t0) const {
    constexpr int AT_ONCE = 32 / (HEADS * WIDTH / PIECE);  // steps that a warp copies at once
    const uint4* pieces = reinterpret_cast<const uint4*>(from);
#pragma unroll
    for (int i = 0; i < SUB; i += AT_ONCE) {
      const int step = i + (KEYED ? key_step : value_step), t = min(t0 + step, T - 1);
      const unsigned number = KEYED ? key + t * keys : value + t * values;
      if (AT_ONCE <= SUB || step < SUB) copy_16(to + (threadIdx.x % 32 + i * (32 / AT_ONCE)) * PIECE, pieces + number);
    }
  }
  __device__ void copy_scalars(float* to, const float* from, int t0) const {
    const unsigned number = scalar + min(t0 + scalar_step, T - 1) * scalars;
    if (scalar_step < SUB) copy_4(to + threadIdx.x % 32, from + number);
  }
};

// The copies are here, and every warp of the block has done what it did before.
__device__ void arrive() {
  wait_for_copies();
  __syncthreads();
}

// e, of which k e^T is written.
__device__ float error_of(const float (&S)[ROWS], const float (&key)[ROWS], float v, float beta) {
#if FORM == 2
  return beta * v;
#else
  return fmaf(-beta, dot(S, key), v);
#endif
}

__device__ void load_state(float (&S)[ROWS], const float* from) {
#pragma unroll
  for (int n = 0; n < ROWS; n++) S[n] = from[n * V];
}
__device__ void store_state(const float (&S)[ROWS], float* to) {
#pragma unroll
  for (int n = 0; n < ROWS; n++) to[n * V] = S[n];
}
