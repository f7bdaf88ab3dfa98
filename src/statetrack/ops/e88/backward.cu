// The backward pass: the gradients, chunk by chunk of KEEP steps from the last. A chunk is run forward again from its
// kept state, leaving a state in scratch before each piece of SUB steps; then, last piece first, a piece is run again
// with its states in shared memory and walked back. cpu.py spells out the gradients.

// The sums over the V lanes of a head of COUNT numbers a lane: a lane ends with those from `offset` on, COUNT / V of
// them or one. Each exchange halves what a lane still has to sum: COUNT - 1 shuffles in all instead of COUNT log2 V.
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
  // With fewer rows than lanes, neighbours hold the same.
  const bool mine = N >= V || at.lane % (V / N > 0 ? V / N : 1) == 0;
  if (at.real && mine) {
#pragma unroll
    for (int i = 0; i < EACH; i++) to[offset + i] = narrow(x[i]);
  }
}

// The rows of S lie across lanes; from shared memory a lane can take a whole row instead: dq = S do without shuffles.
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

struct Room {  // the backward pass in shared memory, which decides how many warps a multiprocessor holds
  Staged staged;
  Slot slots[SUB + 1];  // the states before each step of a piece, and after the last
  float r[SUB][32];     // S'^T k at each
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
      for (int n = 0; n < N; n += 4) {
        bounds[(piece * N / 4 + n / 4) * 32] = make_float4(S[n], S[n + 1], S[n + 2], S[n + 3]);
      }
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
        room.r[i][at.lane] = r;
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
        const float d = staged.decay[buffer][mine], b = staged.beta[buffer][mine], r = room.r[i][at.lane];
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
