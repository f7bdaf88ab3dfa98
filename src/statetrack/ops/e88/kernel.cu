// E88 on an NVIDIA GPU, one write a step. A lane owns one column of S (N numbers in registers), so S^T k, the update and
// S^T q never cross lanes; a warp is a block of its own and holds 32 / V heads. Compiled at first use with these macros:
//
//   N, V        8, 16 or 32          HALF    1: q, k, v, out and their gradients are bfloat16, else float32
//   FORM        0: S = tanh(d S + k (v - beta S^T k)^T)    1: the same without tanh    2: S = d S + beta k v^T (Mamba-2)
//   APPROX      1: tanh in one instruction, good to about 2^-11
//   KEEP        a state is kept every KEEP steps           SUB     steps staged, and run again, at a time; divides KEEP
//
// q and k have QH heads, of which each serves H / QH heads of v (Mamba-2's groups); their gradients come out a head of v.
// Layouts: q, k (B, T, QH, N); v, out (B, T, H, V); decay, beta (B, T, H) float32; states (B, H, N, V) float32;
// kept (B, H, chunk, N, V).

#if HALF
typedef unsigned short number;
__device__ float wide(number x) { return __uint_as_float((unsigned)x << 16); }
__device__ number narrow(float x) {
  number y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
#else
typedef float number;
__device__ float wide(number x) { return x; }
__device__ number narrow(float x) { return x; }
#endif

constexpr int HEADS = 32 / V;               // heads in a warp
constexpr int PIECE = 16 / sizeof(number);  // numbers in the 16 bytes of one asynchronous copy
constexpr int KEYS = SUB * HEADS * N, VALUES = SUB * HEADS * V;
constexpr int UNROLLED = FORWARD_UNROLL;
constexpr unsigned ALL = 0xffffffffu;

__device__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// z holds SCALE times the argument x and becomes tanh(x) = 1 - 2 / (1 + 2^z), with absolute error below 1e-6. The
// special-function unit is the bottleneck, so four numbers may share one reciprocal: 1/a = bcd / abcd. From x = 9.5 on
// the result rounds to 1, and four factors of e^19 do not overflow. EXACT spends a reciprocal on each number, and is -1 or
// 1 to the last bit where tanh is: there 1 - tanh^2 must be 0, or saturated states would pass on huge gradients.
#if FORM == 0 && !APPROX
constexpr float SCALE = 2.8853900817779268f;  // 2 / ln 2
#else
constexpr float SCALE = 1.0f;
#endif
template <bool EXACT>
__device__ void saturate(float (&z)[N]) {
#if APPROX
#pragma unroll
  for (int n = 0; n < N; n++) asm("tanh.approx.f32 %0, %0;" : "+f"(z[n]));
#else
  if constexpr (EXACT) {
#pragma unroll
    for (int n = 0; n < N; n++) z[n] = fmaf(-2.0f, reciprocal(1.0f + exp2_fast(z[n])), 1.0f);
  } else {
#pragma unroll
    for (int n = 0; n < N; n += 4) {
      float a[4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        float x;
        asm("min.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(z[n + i]), "f"(9.5f * SCALE));  // NaN stays NaN
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

// Four numbers of shared memory; every lane of a head reads the same address.
__device__ void read_four(const float* from, float (&x)[4]) {
  const float4 raw = *reinterpret_cast<const float4*>(from);
  x[0] = raw.x, x[1] = raw.y, x[2] = raw.z, x[3] = raw.w;
}

// S . x for a staged row x, in four independent sums.
__device__ float dot(const float (&S)[N], const float* row) {
  float sums[4] = {0, 0, 0, 0};
#pragma unroll
  for (int n = 0; n < N; n += 4) {
    float x[4];
    read_four(row + n, x);
#pragma unroll
    for (int i = 0; i < 4; i++) sums[i] = fmaf(S[n + i], x[i], sums[i]);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// S <- f(d S + k e^T)
template <bool EXACT>
__device__ void step(float (&S)[N], const float* key, float e, float d) {
  e *= SCALE;
  d *= SCALE;
#pragma unroll
  for (int n = 0; n < N; n += 4) {
    float k[4];
    read_four(key + n, k);
#pragma unroll
    for (int i = 0; i < 4; i++) S[n + i] = fmaf(d, S[n + i], k[i] * e);
  }
#if FORM == 0
  saturate<EXACT>(S);
#endif
}

struct Place {  // where this lane works: row = b * H + h, and the tokens of that row are H apart, from `origin` on
  int lane, head, column, H, QH, T, row;
  long long origin, key_origin;
  bool real;  // the last warp may have heads to spare
  __device__ Place(int T, int H, int QH, int rows) : H(H), QH(QH), T(T) {
    lane = threadIdx.x;
    head = lane / V;
    column = lane % V;
    row = blockIdx.x * HEADS + head;
    real = row < rows;
    if (!real) row = rows - 1;
    origin = origin_of(row);
    key_origin = key_origin_of(row);
  }
  __device__ long long origin_of(int row) const { return (long long)(row / H) * T * H + row % H; }
  __device__ long long key_origin_of(int row) const { return (long long)(row / H) * T * QH + row % H / (H / QH); }
  __device__ long long token(int t) const { return origin + (long long)t * H; }
  __device__ long long state() const { return (long long)row * N * V + column; }
};

// What a warp keeps in shared memory of SUB steps at a time. Copies arrive while the steps before them are worked on;
// bfloat16 arrives in `raw` and is widened once, rather than at every use.
struct Sequences {
  float k[KEYS], q[KEYS], v[VALUES], o[VALUES];
};
struct Staged {
#if HALF
  number raw[2][2 * KEYS + 2 * VALUES];
  Sequences wide;
#else
  Sequences both[2];
#endif
  float decay[2][SUB * HEADS], beta[2][SUB * HEADS];

  __device__ Sequences& ready(int buffer, int lane) {
#if HALF
    float* to = wide.k;
    for (int i = lane * 4; i < 2 * KEYS + 2 * VALUES; i += 128) {
      const uint2 two = *reinterpret_cast<const uint2*>(raw[buffer] + i);
      *reinterpret_cast<float4*>(to + i) =
          make_float4(__uint_as_float(two.x << 16), __uint_as_float(two.x & 0xffff0000u), __uint_as_float(two.y << 16),
                      __uint_as_float(two.y & 0xffff0000u));
    }
    __syncwarp();
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
constexpr int K_AT = 0, Q_AT = KEYS, V_AT = 2 * KEYS, O_AT = 2 * KEYS + VALUES;

// Copy SUB steps of a sequence into shared memory, 16 bytes a lane at a time, without waiting. Steps past the end repeat
// the last one and are never used.
template <int WIDTH, bool KEYED>
__device__ void stage(const Place& at, number* to, const number* from, int t0, int rows) {
  constexpr int ROW = WIDTH / PIECE;
#pragma unroll
  for (int i = 0; i < SUB * HEADS * ROW; i += 32) {
    const int piece = i + at.lane;
    if (SUB * HEADS * ROW % 32 == 0 || piece < SUB * HEADS * ROW) {
      const int t = min(t0 + piece / (HEADS * ROW), at.T - 1);
      long long token = KEYED ? at.key_origin : at.origin;
      if (HEADS > 1) {
        const int row = min(blockIdx.x * HEADS + piece / ROW % HEADS, rows - 1);
        token = KEYED ? at.key_origin_of(row) : at.origin_of(row);
      }
      token += (long long)t * (KEYED ? at.QH : at.H);
      const unsigned target = (unsigned)__cvta_generic_to_shared(to + piece * PIECE);
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target),
                   "l"(from + token * WIDTH + piece % ROW * PIECE));
    }
  }
}

// The same for decay or beta, one number a head and step.
__device__ void stage_scalars(const Place& at, float* to, const float* from, int t0, int rows) {
  if (at.lane < SUB * HEADS) {
    const int t = min(t0 + at.lane / HEADS, at.T - 1);
    const int row = min(blockIdx.x * HEADS + at.lane % HEADS, rows - 1);
    const long long token = (HEADS == 1 ? at.origin : at.origin_of(row)) + (long long)t * at.H;
    const unsigned target = (unsigned)__cvta_generic_to_shared(to + at.lane);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(target), "l"(from + token));
  }
}
__device__ void commit() { asm volatile("cp.async.commit_group;"); }
template <int PENDING>
__device__ void arrive() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING));
  __syncwarp();
}

// What write e adds: k e^T.
__device__ float error_of(const float (&S)[N], const float* key, float v, float beta, float& r) {
#if FORM == 2
  r = v;
  return beta * v;
#else
  r = dot(S, key);
  return fmaf(-beta, r, v);
#endif
}

__device__ void load_state(float (&S)[N], const float* from) {
#pragma unroll
  for (int n = 0; n < N; n++) S[n] = from[n * V];
}
__device__ void store_state(const float (&S)[N], float* to) {
#pragma unroll
  for (int n = 0; n < N; n++) to[n * V] = S[n];
}

extern "C" __global__ void __launch_bounds__(32, FORWARD_RESIDENT)
    e88_forward(const number* q, const number* k, const number* v, const float* decay, const float* beta,
                const float* first, number* out, float* kept, float* last, int T, int H, int QH, int rows) {
  __shared__ __align__(16) Staged staged;
  const Place at(T, H, QH, rows);
  const int chunks = (T + KEEP - 1) / KEEP;
  float S[N];
  load_state(S, first + at.state());
  auto fetch = [&](int buffer, int t0) {
    stage<N, true>(at, staged.place(buffer, K_AT), k, t0, rows);
    stage<N, true>(at, staged.place(buffer, Q_AT), q, t0, rows);
    stage<V, false>(at, staged.place(buffer, V_AT), v, t0, rows);
    stage_scalars(at, staged.decay[buffer], decay, t0, rows);
    stage_scalars(at, staged.beta[buffer], beta, t0, rows);
    commit();
  };
  fetch(0, 0);
  int buffer = 0;
  for (int t0 = 0; t0 < T; t0 += SUB, buffer ^= 1) {
    fetch(buffer ^ 1, t0 + SUB);
    arrive<1>();
    const Sequences& given = staged.ready(buffer, at.lane);
    if (t0 % KEEP == 0 && at.real) {
      store_state(S, kept + ((long long)at.row * chunks + t0 / KEEP) * N * V + at.column);
    }
    const int steps = min(SUB, T - t0);
#pragma unroll UNROLLED
    for (int i = 0; i < steps; i++) {
      const int mine = i * HEADS + at.head;
      const float* key = given.k + mine * N;
      float r;
      const float e = error_of(S, key, given.v[i * 32 + at.lane], staged.beta[buffer][mine], r);
      step<false>(S, key, e, staged.decay[buffer][mine]);
      const float o = dot(S, given.q + mine * N);
      if (at.real) out[at.token(t0 + i) * V + at.column] = narrow(o);
    }
    __syncwarp();
  }
  if (at.real) store_state(S, last + at.state());
}

// The sums over the V lanes of a head of COUNT numbers a lane: a lane ends with those from `offset` on, COUNT / V of them
// or one. Each exchange halves what a lane still has to sum: COUNT - 1 shuffles in all instead of COUNT log2 V.
template <int COUNT, int MASK>
__device__ void sum_over_columns(float (&x)[COUNT], int lane, int& offset) {
  if constexpr (MASK > 0 && COUNT > 1) {
    const bool upper = lane & MASK;
    float half[COUNT / 2];
#pragma unroll
    for (int i = 0; i < COUNT / 2; i++) {
      const float send = upper ? x[i] : x[i + COUNT / 2];
      half[i] = (upper ? x[i + COUNT / 2] : x[i]) + __shfl_xor_sync(ALL, send, MASK);
    }
    if (upper) offset += COUNT / 2;
    sum_over_columns<COUNT / 2, MASK / 2>(half, lane, offset);
#pragma unroll
    for (int i = 0; i < COUNT / 2; i++) x[i] = half[i];
  } else if constexpr (MASK > 0) {
    x[0] += __shfl_xor_sync(ALL, x[0], MASK);
    sum_over_columns<1, MASK / 2>(x, lane, offset);
  }
}

// Sum a row gradient over columns and write it.
__device__ void write_row(float (&x)[N], const Place& at, number* to) {
  int offset = 0;
  sum_over_columns<N, V / 2>(x, at.lane, offset);
  constexpr int EACH = N > V ? N / V : 1;
  const bool mine = N >= V || at.lane % (V / N > 0 ? V / N : 1) == 0;  // fewer rows than lanes: neighbours hold the same
  if (at.real && mine) {
#pragma unroll
    for (int i = 0; i < EACH; i++) to[offset + i] = narrow(x[i]);
  }
}

// The rows of S lie across lanes; seen from shared memory a lane can take a whole row instead: dq = S do without shuffles.
// A row of 33 quadruples puts the 32 rows that are read at once into 32 banks.
typedef float4 Slot[N / 4][33];

__device__ void store_slot(const float (&S)[N], Slot& slot, int lane) {
#pragma unroll
  for (int n = 0; n < N; n += 4) slot[n / 4][lane] = make_float4(S[n], S[n + 1], S[n + 2], S[n + 3]);
}
__device__ void load_slot(float (&S)[N], const Slot& slot, int lane) {
#pragma unroll
  for (int n = 0; n < N; n += 4) {
    const float4 four = slot[n / 4][lane];
    S[n] = four.x, S[n + 1] = four.y, S[n + 2] = four.z, S[n + 3] = four.w;
  }
}
__device__ void write_query_gradient(const Slot& slot, const float* douts, const Place& at, number* to) {
#pragma unroll
  for (int n0 = 0; n0 < N; n0 += V) {
    const int n = n0 + at.column;
    const float* row = reinterpret_cast<const float*>(&slot[n % N / 4][at.head * V]) + n % 4;
    float sums[4] = {0, 0, 0, 0};
#pragma unroll
    for (int c = 0; c < V; c += 4) {
      float x[4];
      read_four(douts + c, x);
#pragma unroll
      for (int j = 0; j < 4; j++) sums[j] = fmaf(row[4 * (c + j)], x[j], sums[j]);
    }
    if (at.real && n < N) to[n] = narrow((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
}

// The backward pass in shared memory, which decides how many warps a multiprocessor holds: so r, a number a lane and step,
// lies in the slots' spare column where that is long enough.
struct Room {
  Staged staged;
  Slot slots[SUB + 1];  // the states before each step of a piece, and after the last
  float spare[N < 32 ? SUB : 1][32];
  __device__ float& r(int i, int lane) {
    if constexpr (N < 32) return spare[i][lane];
    return reinterpret_cast<float*>(&slots[i][lane / 4][32])[lane % 4];
  }
};

extern "C" __global__ void __launch_bounds__(32, RESIDENT)
    e88_backward(const number* q, const number* k, const number* v, const float* decay, const float* beta,
                 const float* kept, const number* dout, const float* dlast, float* scratch, number* dq, number* dk,
                 number* dv, float* ddecay, float* dbeta, float* dfirst, int T, int H, int QH, int rows) {
  __shared__ __align__(16) Room room;
  Staged& staged = room.staged;
  const Place at(T, H, QH, rows);
  const int chunks = (T + KEEP - 1) / KEEP;
  float4* bounds = reinterpret_cast<float4*>(scratch) + (long long)blockIdx.x * (KEEP / SUB) * N * 8 + at.lane;
  float G[N], S[N];
  load_state(G, dlast + at.state());
  auto fetch = [&](int buffer, int t0, bool all) {
    stage<N, true>(at, staged.place(buffer, K_AT), k, t0, rows);
    stage<V, false>(at, staged.place(buffer, V_AT), v, t0, rows);
    stage_scalars(at, staged.decay[buffer], decay, t0, rows);
    stage_scalars(at, staged.beta[buffer], beta, t0, rows);
    if (all) {
      stage<N, true>(at, staged.place(buffer, Q_AT), q, t0, rows);
      stage<V, false>(at, staged.place(buffer, O_AT), dout, t0, rows);
    }
    commit();
  };
  for (int chunk = chunks - 1; chunk >= 0; chunk--) {
    const int begin = chunk * KEEP, pieces = (min(KEEP, T - begin) + SUB - 1) / SUB;

    // Forward through the chunk, leaving the state before every piece of SUB steps but the last in scratch.
    load_state(S, kept + ((long long)at.row * chunks + chunk) * N * V + at.column);
    fetch(0, begin, pieces == 1);
    for (int piece = 0; piece < pieces - 1; piece++) {
      const int buffer = piece & 1;
#pragma unroll
      for (int n = 0; n < N; n += 4) bounds[(piece * N / 4 + n / 4) * 32] = make_float4(S[n], S[n + 1], S[n + 2], S[n + 3]);
      fetch(buffer ^ 1, begin + (piece + 1) * SUB, piece == pieces - 2);  // the last piece is walked back next
      arrive<1>();
      const Sequences& given = staged.ready(buffer, at.lane);
#pragma unroll 1
      for (int i = 0; i < SUB; i++) {
        const int mine = i * HEADS + at.head;
        const float* key = given.k + mine * N;
        float r;
        const float e = error_of(S, key, given.v[i * 32 + at.lane], staged.beta[buffer][mine], r);
        step<false>(S, key, e, staged.decay[buffer][mine]);
      }
      __syncwarp();
    }

    // Back through the pieces, last first; S is the state before the last one.
    for (int piece = pieces - 1; piece >= 0; piece--) {
      const int t0 = begin + piece * SUB, buffer = piece & 1, steps = min(SUB, T - t0);
      if (piece > 0) {
        fetch(buffer ^ 1, t0 - SUB, true);
        arrive<1>();
      } else {
        arrive<0>();
      }
      const Sequences& given = staged.ready(buffer, at.lane);
#pragma unroll 1
      for (int i = 0; i < steps; i++) {
        store_slot(S, room.slots[i], at.lane);
        const int mine = i * HEADS + at.head;
        const float* key = given.k + mine * N;
        float r;
        const float e = error_of(S, key, given.v[i * 32 + at.lane], staged.beta[buffer][mine], r);
        room.r(i, at.lane) = r;
        step<true>(S, key, e, staged.decay[buffer][mine]);
      }
      store_slot(S, room.slots[steps], at.lane);
      __syncwarp();
      float4 next[N / 4];  // the state before the piece before this one, on its way while this one is walked
      if (piece > 0) {
#pragma unroll
        for (int n = 0; n < N / 4; n++) next[n] = bounds[((piece - 1) * N / 4 + n) * 32];
      }
#pragma unroll 1
      for (int i = steps - 1; i >= 0; i--) {
        const int mine = i * HEADS + at.head;
        const float *key = given.k + mine * N, *query = given.q + mine * N;
        const float value = given.v[i * 32 + at.lane], o = given.o[i * 32 + at.lane];
        const float d = staged.decay[buffer][mine], b = staged.beta[buffer][mine], r = room.r(i, at.lane);
        const long long token = at.token(t0 + i);
        write_query_gradient(room.slots[i + 1], given.o + mine * V, at, dq + token * N);
        // out = S^T q and S = f(Z): G becomes the gradient in Z, and de = G^T k.
        float des[4] = {0, 0, 0, 0};
#pragma unroll
        for (int n = 0; n < N; n += 4) {
          float x[4], y[4];
          read_four(query + n, x);
          read_four(key + n, y);
#pragma unroll
          for (int j = 0; j < 4; j++) {
            float g = fmaf(x[j], o, G[n + j]);
#if FORM == 0
            g = fmaf(-g * S[n + j], S[n + j], g);
#endif
            des[j] = fmaf(g, y[j], des[j]);
            G[n + j] = g;
          }
        }
        const float de = (des[0] + des[1]) + (des[2] + des[3]);
#if FORM == 2
        const float e = b * value, dr = 0, dvalue = b * de, drate = de * value;
#else
        const float e = fmaf(-b, r, value), dr = -b * de, dvalue = de, drate = -de * r;
#endif
        if (at.real) dv[token * V + at.column] = narrow(dvalue);
        // Z = d S' + k e^T with e = v - beta S'^T k: G becomes the gradient in S'.
        float share[N], sums[4] = {0, 0, 0, 0};
        load_slot(S, room.slots[i], at.lane);
#pragma unroll
        for (int n = 0; n < N; n += 4) {
          float y[4];
          read_four(key + n, y);
#pragma unroll
          for (int j = 0; j < 4; j++) {
            const float g = G[n + j], s = S[n + j];
            share[n + j] = fmaf(g, e, s * dr);
            sums[j] = fmaf(g, s, sums[j]);
            G[n + j] = fmaf(d, g, y[j] * dr);
          }
        }
        write_row(share, at, dk + token * N);
        float both[2] = {(sums[0] + sums[1]) + (sums[2] + sums[3]), drate};
        int which = 0;
        sum_over_columns<2, V / 2>(both, at.lane, which);
        if (at.real && at.column % (V / 2) == 0) (which ? dbeta : ddecay)[token] = both[0];
      }
#pragma unroll
      for (int n = 0; n < N; n += 4) {
        S[n] = next[n / 4].x, S[n + 1] = next[n / 4].y, S[n + 2] = next[n / 4].z, S[n + 3] = next[n / 4].w;
      }
      __syncwarp();
    }
  }
  if (at.real) store_state(G, dfirst + at.state());
}
