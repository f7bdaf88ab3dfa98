// E88 on an NVIDIA GPU with several writes a step, or with all of the state read, for small heads: what
// writes_forward.cu and writes_backward.cu share; each is compiled behind this file, and this one behind
// instructions.cuh and columns.cuh.
//
// Few heads are few warps, too few to hide each other's waiting: what counts is how long a step takes. Each of its R writes
// reads what the one before left. So a lane has a column of S and all keys of a step in registers, and a write waits for
// the lane's own sum alone; where more is to be done than waited for, which is so walking back, two lanes share a column.
// What a step needs of the sequences is copied into shared memory in the background, SUB steps at a time. Compiled with
// the macros that columns.cuh names, N being 8 or 16 and LANES V at most 32, and with these:
//
//   WRITES      R
//   WHOLE       1: all of S is read, else S^T q
//   SATURATES   1: tanh
//   APPROX      1: tanh in one instruction, good to about 2^-11
//   KEEP        where not all of it is read, a state is kept every KEEP steps
//   SUB         steps staged at a time
//   RESIDENT    blocks that should fit on a multiprocessor, which bounds the registers of a lane
//
// Layouts: q (B, T, H, N), k (B, T, R, H, N), v (B, T, R, H, V), decay (B, T, H) and beta (B, T, R, H) float32, out
// (B, T, H, V) or, float32, (B, T, N, H, V); kept (B, H, chunk, N, V) for all chunks but the first, whose state is given.

static_assert(LANES * V <= 32, "a warp has whole heads");

#if WHOLE
typedef float shown;  // of out and its gradient
__device__ float show(float x) { return x; }
constexpr int SHOWN = N;  // of a head and token, by V
#else
typedef number shown;
__device__ number show(float x) { return narrow(x); }
constexpr int SHOWN = 1;
#endif

// Numbers of shared memory, widened.
__device__ float wide(float x) { return x; }
__device__ float wide(unsigned short x) { return __uint_as_float((unsigned)x << 16); }
template <int COUNT>
__device__ void read_row(const float* from, float (&x)[COUNT]) {
  read_some(from, x);
}
template <int COUNT>
__device__ void read_row(const unsigned short* from, float (&x)[COUNT]) {
  static_assert(COUNT % 4 == 0, "quadruples");
#pragma unroll
  for (int i = 0; i < COUNT; i += 4) {
    const uint2 four = *reinterpret_cast<const uint2*>(from + i);
    x[i] = __uint_as_float(four.x << 16), x[i + 1] = __uint_as_float(four.x & 0xffff0000u);
    x[i + 2] = __uint_as_float(four.y << 16), x[i + 3] = __uint_as_float(four.y & 0xffff0000u);
  }
}

// A lane's share in copying a sequence (B, T, OF_STEP, H, WIDTH) to shared memory, SUB steps of the block's heads at a time.
template <typename X, int WIDTH, int OF_STEP>
struct Stream {
  static constexpr int BYTES = WIDTH * sizeof(X) < 16 ? 4 : 16;  // of one copy
  static constexpr int ROW = WIDTH * sizeof(X) / BYTES, OF_ENTRY = HEADS * ROW, COUNT = SUB * OF_STEP * OF_ENTRY;
  const char* from;  // this thread's part of the first entry
  unsigned apart;    // to that of the next
  unsigned first, last;  // the first entry it copies in a step, and the last there is
  static_assert(THREADS % OF_ENTRY == 0, "a thread copies the same part of every entry");
  __device__ Stream(const X* all, const Place& at, int rows) {
    const int mine = threadIdx.x % THREADS, row = min(blockIdx.x * HEADS + mine / ROW % HEADS, rows - 1);
    first = mine / OF_ENTRY;
    last = at.T * OF_STEP - 1;
    apart = at.H * WIDTH * sizeof(X);
    from = reinterpret_cast<const char*>(all + ((long long)(row / at.H) * at.T * OF_STEP * at.H + row % at.H) * WIDTH) +
           mine % ROW * BYTES;
  }
  // The steps from t0 on. Nobody uses what comes of those before the first and past the last.
  __device__ void fetch(X* to, int t0) const {
    const unsigned mine = threadIdx.x % THREADS;
    char* target = reinterpret_cast<char*>(to) + mine * BYTES;
#pragma unroll
    for (int i = 0; i < (COUNT + THREADS - 1) / THREADS; i++) {
      if (COUNT % THREADS == 0 || mine + THREADS * i < COUNT) {
        const unsigned entry = min(t0 * OF_STEP + first + i * (THREADS / OF_ENTRY), last);
        const char* source = from + (unsigned long long)entry * apart;
        if constexpr (BYTES == 16) {
          copy_16(target + i * THREADS * BYTES, source);
        } else {
          copy_4(target + i * THREADS * BYTES, source);
        }
      }
    }
  }
};

// The signs of the noise on the block's columns: N words a step, where heads are not filled up.
struct SignStream {
  const unsigned* from;
  unsigned apart, first, last;
  __device__ SignStream(const Noise& noise, const Place& at, int rows) {
    constexpr int OF_HEAD = N / IN_WORD;
    const int mine = threadIdx.x % THREADS, word = mine % N, row = min(blockIdx.x * HEADS + word / OF_HEAD, rows - 1);
    const Signs signs(noise, row, at.T);
    from = signs.words + signs.begin / 32 + word % OF_HEAD;
    apart = 2 * noise.per_step;
    first = mine / N;
    last = at.T - 1;
  }
  // Those that come before the SUB steps from t0 on, which are those of the steps before.
  __device__ void fetch(unsigned* to, int t0) const {
    const unsigned mine = threadIdx.x % THREADS;
#pragma unroll
    for (int i = 0; i < (SUB * N + THREADS - 1) / THREADS; i++) {
      if (SUB * N % THREADS == 0 || mine + THREADS * i < SUB * N) {
        const unsigned t = min(t0 - 1 + first + i * (THREADS / N), last);
        copy_4(to + mine + THREADS * i, from + (unsigned long long)t * apart);
      }
    }
  }
};

// What the writes of SUB steps need.
struct Staged {
  number k[SUB * WRITES * HEADS * N], v[SUB * WRITES * 32];
  float beta[SUB * WRITES * HEADS], decay[SUB * HEADS];
#if NOISY
  unsigned signs[SUB * N];
#endif
};
struct Feed {
  Stream<number, N, WRITES> k;
  Stream<number, V, WRITES> v;
  Stream<float, 1, WRITES> beta;
  Stream<float, 1, 1> decay;
#if NOISY && !FILLED
  SignStream signs;
#endif
  __device__ Feed(const number* k, const number* v, const float* decay, const float* beta, const Noise& noise,
                  const Place& at, int rows)
      : k(k, at, rows), v(v, at, rows), beta(beta, at, rows), decay(decay, at, rows)
#if NOISY && !FILLED
        , signs(noise, at, rows)
#endif
  {
  }
  __device__ void fetch(Staged& to, int t0) const {
    k.fetch(to.k, t0);
    v.fetch(to.v, t0);
    beta.fetch(to.beta, t0);
    decay.fetch(to.decay, t0);
#if NOISY && !FILLED
    signs.fetch(to.signs, t0);
#endif
  }
};
// What was asked for is here, and all lanes have done what they did before.
__device__ void arrive() {
  wait_for_copies();
  __syncthreads();
}

struct Given {  // of a step, for a lane's rows of its column
  float key[WRITES][ROWS], value[WRITES], beta[WRITES], decay;
  __device__ Given(const Staged& staged, const Place& at, int i) {
    decay = staged.decay[i * HEADS + at.head];
#pragma unroll
    for (int j = 0; j < WRITES; j++) {
      const int entry = i * WRITES + j;
      read_row(staged.k + (entry * HEADS + at.head) * N + at.part * ROWS, key[j]);
      value[j] = wide(staged.v[entry * 32 + at.slot]);
      beta[j] = staged.beta[entry * HEADS + at.head];
    }
  }
};

// The column at the beginning of step t, number i of those staged, with the noise of the step before.
__device__ void move(float (&S)[ROWS], const Staged& staged, const Noise& noise, const Signs& signs, const Place& at, int t,
                     int i) {
#if NOISY
#if FILLED
  add_noise(S, noise, at, t);
#else
  if (t == 0) return;
  unsigned bits[ROWS / IN_WORD];
  const unsigned* from = staged.signs + i * N + (at.head * N + at.part * ROWS) / IN_WORD;
#pragma unroll
  for (int n = 0; n < ROWS / IN_WORD; n++) bits[n] = from[n];
#pragma unroll
  for (int n = 0; n < ROWS; n++) S[n] += signs.of(bits, n, at.column);
#endif
#endif
}

// e of write j, which adds k e^T.
__device__ float error_of(const Given& x, int j, float read) { return fmaf(-x.beta[j], read, x.value[j]); }
__device__ void write(float (&Z)[ROWS], const Given& x, int j, float e) {
#pragma unroll
  for (int n = 0; n < ROWS; n++) Z[n] = fmaf(x.key[j][n], e, j == 0 ? x.decay * Z[n] : Z[n]);
}

// tanh |z| = 1 - 2 / (1 + e^{2|z|}), with an absolute error below 1e-6, and 1 to the last bit where tanh is: there
// 1 - tanh^2 must be 0, or saturated states would pass on huge gradients. Beyond 9.5 it is, so no argument is larger, and
// four numbers can share one reciprocal, 1/a = bcd / abcd with a = -(1 + e^{2|z|}) / 2: four factors of e^19 do not
// overflow. What is not a number stays so.
__device__ void saturate(float (&Z)[ROWS]) {
#if SATURATES && APPROX
#pragma unroll
  for (int n = 0; n < ROWS; n++) Z[n] = tanh_fast(Z[n]);
#elif SATURATES
#pragma unroll
  for (int n = 0; n < ROWS; n += 4) {
    float a[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const float bounded = smaller(fabsf(Z[n + i]), 9.5f);
      a[i] = fmaf(exp2_fast(2.8853900817779268f * bounded), -0.5f, -0.5f);  // 2 / ln 2
    }
    const float ab = a[0] * a[1], cd = a[2] * a[3];
    const float inverse = reciprocal(ab * cd);
    const float by_ab = inverse * cd, by_cd = inverse * ab;
    Z[n] = copysignf(fmaf(by_ab, a[1], 1.0f), Z[n]);
    Z[n + 1] = copysignf(fmaf(by_ab, a[0], 1.0f), Z[n + 1]);
    Z[n + 2] = copysignf(fmaf(by_cd, a[3], 1.0f), Z[n + 2]);
    Z[n + 3] = copysignf(fmaf(by_cd, a[2], 1.0f), Z[n + 3]);
  }
#endif
}

// All of a step.
__device__ void step(float (&S)[ROWS], const Given& x) {
#pragma unroll
  for (int j = 0; j < WRITES; j++) write(S, x, j, error_of(x, j, dot(S, x.key[j])));
  saturate(S);
}

// Where the state before a chunk is kept.
__device__ long long kept_at(const Place& at, int chunk) {
  return at.state((long long)at.row * ((at.T - 1) / KEEP) + chunk - 1);
}
