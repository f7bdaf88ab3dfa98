// What the kernels of E88 on an NVIDIA GPU share: columns of the state, where they lie, and their noise. It is compiled
// behind instructions.cuh and before step.cuh, which says how one write a step works.
//
// A column of S is run on its own: its S^T k, update and S^T q need no other. LANES lanes of a warp own one together, each
// N / LANES rows in registers. A block holds 32 columns, which are 32 / V heads, on LANES warps. Compiled at first use, with
// these macros among others:
//
//   N, V        8, 16 or 32
//   LANES       1, 2 or 4, at most N / 4
//   HALF        1: the sequences and their gradients are bfloat16, else float32
//   NOISY       1: each number of the state moves between two steps, as statetrack/ops/noise.py says
//   FILLED      1: heads are smaller than N x V and filled up with zeros, which get no noise
//
// States are (B, H, N, V) float32, and kept without their noise.

#if HALF
typedef unsigned short number;
__device__ number narrow(float x) { return to_bfloat16(x); }
#else
typedef float number;
__device__ number narrow(float x) { return x; }
#endif

constexpr int HEADS = 32 / V;        // heads in a block
constexpr int ROWS = N / LANES;      // rows of S a lane holds
constexpr int COLUMNS = 32 / LANES;  // columns in a warp
constexpr int THREADS = 32 * LANES;  // a block
constexpr unsigned ALL = 0xffffffffu;
constexpr int IN_WORD = 32 / V;      // rows of a head whose signs of noise are 32 bits

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
