// The gradients of several writes a step, from the last step to the first. What a step found is needed for them: where all
// of the state was read, out has it; else a chunk of KEEP steps, which is SUB, is run again from its kept state. What each
// of its writes found is computed anew. The gradient in the state waits for no more than its own sums; those over columns,
// for k, q, decay and beta, are for nobody to wait for. cpu_loops.py spells out the gradients.

static_assert(WHOLE || KEEP == SUB, "what is run again is what is staged");

struct Room {
  Staged staged;
#if WHOLE
  float states[SUB * N * 32];  // before the steps
#else
  number q[SUB * HEADS * N];
#endif
  shown o[SUB * SHOWN * 32];  // the gradient of out
};

// Add numbers up over the columns of a head. The lane of column c is left with one or more sums, of those from
// first_of(c) on; where there are fewer numbers than columns, several lanes have the same.
template <int COUNT, int APART = V / 2, int SIZE>
__device__ void add_columns(float (&x)[SIZE], int column) {
  if constexpr (APART > 0) {
    if constexpr (COUNT > 1) {
      const bool upper = column & APART;
#pragma unroll
      for (int i = 0; i < COUNT / 2; i++) {
        const float mine = upper ? x[i + COUNT / 2] : x[i], theirs = upper ? x[i] : x[i + COUNT / 2];
        x[i] = mine + __shfl_xor_sync(ALL, theirs, APART);
      }
      add_columns<COUNT / 2, APART / 2>(x, column);
    } else {
      x[0] += __shfl_xor_sync(ALL, x[0], APART);
      add_columns<1, APART / 2>(x, column);
    }
  }
}
template <int COUNT>
struct Sums {
  static constexpr int HELD = COUNT > V ? COUNT / V : 1, SAME = V > COUNT ? V / COUNT : 1;
  static __device__ int first_of(int column) { return column / SAME * HELD; }
  static __device__ bool writes(const Place& at) { return at.real && at.column % SAME == 0; }
};

// The sums over columns of a lane's rows, of a key or a query whose gradient is at `to`, or before it by first_of.
__device__ void write_sums(number* to, float (&x)[ROWS], const Place& at) {
  add_columns<ROWS>(x, at.column);
  if (!Sums<ROWS>::writes(at)) return;
#pragma unroll
  for (int i = 0; i < Sums<ROWS>::HELD; i++) to[i] = narrow(x[i]);
}

// A power of two that has room for the gradients of all betas and of the decay.
constexpr int RATES = WRITES < 2 ? 2 : WRITES < 4 ? 4 : WRITES < 8 ? 8 : 16;

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    e88_writes_backward(const number* q, const number* k, const number* v, const float* decay, const float* beta,
                        const float* first, const float* found, const shown* dout, const float* dlast, number* dq,
                        number* dk, number* dv, float* ddecay, float* dbeta, float* dfirst, const unsigned* words,
                        double size, int per_step, int replica, int n_true, int width, int T, int H, int rows) {
  __shared__ __align__(16) Room rooms[2];
  const Place at(T, H, H, rows);
  const Noise noise{words, (float)size, per_step, replica, n_true, width};
  const Signs signs(noise, at.row, T);
  const Feed feed(k, v, decay, beta, noise, at, rows);
  const Stream<shown, V, SHOWN> gradients(dout, at, rows);
#if WHOLE
  const Stream<float, V, N> shown_states(found, at, rows);
#else
  __shared__ float rerun[SUB * ROWS * THREADS];
  const Stream<number, N, 1> queries(q, at, rows);
#endif
  auto fetch = [&](int buffer, int t0) {
    Room& room = rooms[buffer];
    feed.fetch(room.staged, t0);
    gradients.fetch(room.o, t0);
#if WHOLE
    shown_states.fetch(room.states, t0 - 1);
#else
    queries.fetch(room.q, t0);
#endif
  };
  const int pieces = (T + SUB - 1) / SUB;
  float after[ROWS];  // the state after the step that is next
#if WHOLE
  const float* end = found + (((long long)(at.row / H) * T + T - 1) * N * H + at.row % H) * V + at.column;
#pragma unroll
  for (int n = 0; n < ROWS; n++) after[n] = end[(long long)(at.part * ROWS + n) * H * V];
#else
  float next[ROWS];  // that before the piece that is run again next
  auto load_before = [&](int piece) {
    load_column(next, piece > 0 ? found + kept_at(at, piece) : first + at.state());
  };
  load_before(pieces - 1);
#endif
  float G[ROWS];  // the gradient in the state
  load_column(G, dlast + at.state());
  // Where this lane writes: these walk back with the steps.
  const long long token = at.origin + (long long)(T - 1) * H;
  const long long entry = (long long)(at.row / H) * T * WRITES * H + (long long)(T - 1) * WRITES * H + at.row % H;
  const int of_lane = at.part * ROWS + Sums<ROWS>::first_of(at.column);
  dq += token * N + of_lane;
  dk += entry * N + of_lane;
  dv += entry * V + at.column;
  dbeta += entry;
  ddecay += token;
  int buffer = 0;
  fetch(buffer, (pieces - 1) * SUB);
  for (int piece = pieces - 1; piece >= 0; piece--, buffer ^= 1) {
    const int t0 = piece * SUB, steps = min(SUB, T - t0);
    arrive();
    if (piece > 0) fetch(buffer ^ 1, t0 - SUB);
    Room& room = rooms[buffer];
#if WHOLE
    if (piece == 0) {  // the first state is none of those shown
#pragma unroll
      for (int n = 0; n < ROWS; n++) room.states[(at.part * ROWS + n) * 32 + at.slot] = first[at.state() + n * V];
    }
#else
    copy_rows(after, next);
    if (piece > 0) load_before(piece - 1);
#pragma unroll 1
    for (int i = 0; i < steps; i++) {
#pragma unroll
      for (int n = 0; n < ROWS; n++) rerun[(i * ROWS + n) * THREADS + threadIdx.x] = after[n];
      const Given x(room.staged, at, i);
      move(after, room.staged, noise, signs, at, t0 + i, i);
      step(after, x);
    }
#endif
#pragma unroll 1
    for (int i = steps - 1; i >= 0; i--) {
      const Given x(room.staged, at, i);
      // The state before the step, which is that after the one before, and what each write found and left.
      float Z[WRITES][ROWS], before[ROWS], read[WRITES], e[WRITES];
#if WHOLE
#pragma unroll
      for (int n = 0; n < ROWS; n++) before[n] = room.states[(i * N + at.part * ROWS + n) * 32 + at.slot];
#else
#pragma unroll
      for (int n = 0; n < ROWS; n++) before[n] = rerun[(i * ROWS + n) * THREADS + threadIdx.x];
#endif
      copy_rows(Z[0], before);
      move(Z[0], room.staged, noise, signs, at, t0 + i, i);
#pragma unroll
      for (int j = 0; j < WRITES; j++) {
        read[j] = dot(Z[j], x.key[j]);
        e[j] = error_of(x, j, read[j]);
        if (j + 1 < WRITES) {
          copy_rows(Z[j + 1], Z[j]);
          write(Z[j + 1], x, j, e[j]);
        }
      }
      // out = S^T q, or all of S.
#if WHOLE
#pragma unroll
      for (int n = 0; n < ROWS; n++) G[n] += room.o[(i * N + at.part * ROWS + n) * 32 + at.slot];
#else
      float query[ROWS], of_query[ROWS];
      read_row(room.q + (i * HEADS + at.head) * N + at.part * ROWS, query);
      const float o = wide(room.o[i * 32 + at.slot]);
#pragma unroll
      for (int n = 0; n < ROWS; n++) {
        of_query[n] = after[n] * o;
        G[n] = fmaf(query[n], o, G[n]);
      }
      write_sums(dq, of_query, at);
#endif
#if SATURATES
#pragma unroll
      for (int n = 0; n < ROWS; n++) G[n] = fmaf(-G[n] * after[n], after[n], G[n]);
#endif
      copy_rows(after, before);
      // Z' = Z + k e^T with e = v - beta Z^T k: dv = de = G^T k, dk = G e - beta Z de, and G <- G - beta k de^T. The first
      // write adds to decay Z instead.
      float rates[RATES];
#pragma unroll
      for (int j = WRITES; j < RATES; j++) rates[j] = 0;
#pragma unroll
      for (int j = WRITES - 1; j >= 0; j--) {
        const float de = dot(G, x.key[j]), back = -x.beta[j] * de;
        if (at.real && at.part == 0) dv[j * H * V] = narrow(de);
        rates[j] = -de * read[j];
        float of_key[ROWS];
#pragma unroll
        for (int n = 0; n < ROWS; n++) of_key[n] = fmaf(G[n], e[j], Z[j][n] * back);
        if (j == 0) rates[WRITES] = dot(G, Z[0]);
#pragma unroll
        for (int n = 0; n < ROWS; n++) G[n] = fmaf(x.key[j][n], back, j == 0 ? x.decay * G[n] : G[n]);
        write_sums(dk + j * H * N, of_key, at);
      }
      add_columns<RATES>(rates, at.column);
      if (at.part == 0 && Sums<RATES>::writes(at)) {
#pragma unroll
        for (int i = 0; i < Sums<RATES>::HELD; i++) {
          const int j = Sums<RATES>::first_of(at.column) + i;
          if (j < WRITES) dbeta[j * H] = rates[i];
          if (j == WRITES) *ddecay = rates[i];
        }
      }
      dq -= H * N;
      dk -= (long long)WRITES * H * N;
      dv -= (long long)WRITES * H * V;
      dbeta -= WRITES * H;
      ddecay -= H;
    }
  }
  if (at.real) store_column(G, dfirst + at.state());
}
