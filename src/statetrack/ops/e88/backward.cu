// The backward pass: the gradients, chunk by chunk of KEEP steps from the last. A chunk is run forward again from its
// kept state, leaving a state in scratch before each piece of SUB steps; then, last piece first, a piece is run again
// with its states in shared memory and walked back. cpu.py spells out the gradients.
//
// The gradients of q, k, decay and beta are sums over the columns of a head. A warp sums over those it holds, and at the
// end of a piece the block adds up its warps and writes.

constexpr int HELD = COLUMNS < V ? COLUMNS : V;      // columns of one head in a warp
constexpr int PARTS = COLUMNS > V ? COLUMNS / V : 1;  // heads in a warp, whole or in part
constexpr int OVER = V / HELD;                        // warps that a head lies over

// A state in shared memory: a lane writes its part of a column, and can take a whole row instead. A row of 33 quadruples
// puts the 32 rows that are read at once into 32 banks.
struct Slot {
  float4 quads[N / 4][33];
  float r[32];  // S'^T k of the step from here
  __device__ void store(const float (&S)[ROWS], const Place& at) {
#pragma unroll
    for (int n = 0; n < ROWS; n += 4) {
      quads[(at.part * ROWS + n) / 4][at.slot] = make_float4(S[n], S[n + 1], S[n + 2], S[n + 3]);
    }
  }
  __device__ void load(float (&S)[ROWS], const Place& at) const {
#pragma unroll
    for (int n = 0; n < ROWS; n += 4) {
      const float4 four = quads[(at.part * ROWS + n) / 4][at.slot];
      S[n] = four.x, S[n + 1] = four.y, S[n + 2] = four.z, S[n + 3] = four.w;
    }
  }
};

// Sums over a warp's columns, a row of a head for a lane: lane + 32 i serves row (lane + 32 i) % N.
constexpr int SUMS = PARTS * N, EACH = (SUMS + 31) / 32;

template <bool WEIGHTED>
__device__ void sum_rows(const Slot& slot, const float* weights, const Place& at, float (&sums)[EACH]) {
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    const int n = (at.lane + 32 * i) % N, first = at.warp * COLUMNS + (at.lane + 32 * i) / N % PARTS * HELD;
    const float* row = reinterpret_cast<const float*>(&slot.quads[n / 4][first]) + n % 4;
    float four[4] = {0, 0, 0, 0};
#pragma unroll
    for (int c = 0; c < HELD; c += 4) {
      float x[4] = {1, 1, 1, 1};
      if (WEIGHTED) read_four(weights + first + c, x);
#pragma unroll
      for (int j = 0; j < 4; j++) four[j] = fmaf(row[4 * (c + j)], x[j], four[j]);
    }
    sums[i] = (four[0] + four[1]) + (four[2] + four[3]);
  }
}

// A warp's part of the sums of a step, in the slot of its last state, which is not needed any more: SUMS numbers of dq,
// SUMS of dk, then ddecay and dbeta of each head.
__device__ float* part_of(Slot& slot, int warp, int number) {
  return reinterpret_cast<float*>(&slot.quads[number / (4 * COLUMNS)][warp * COLUMNS]) + number % (4 * COLUMNS);
}
__device__ void store_parts(Slot& slot, const Place& at, int from, const float (&sums)[EACH]) {
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    const int number = at.lane + 32 * i;
    if (SUMS % 32 == 0 || number < SUMS) *part_of(slot, at.warp, from + number) = sums[i];
  }
}

__device__ void write_four(number* to, float4 x) {
#if HALF
  const number four[4] = {narrow(x.x), narrow(x.y), narrow(x.z), narrow(x.w)};
  *reinterpret_cast<uint2*>(to) = make_uint2(four[0] | (unsigned)four[1] << 16, four[2] | (unsigned)four[3] << 16);
#else
  *reinterpret_cast<float4*>(to) = x;
#endif
}

struct Room {  // the backward pass in shared memory, which decides how many blocks a multiprocessor holds
  Staged staged;
  Slot slots[SUB + 1];  // the states before each step of a piece, and after the last
};

// Add up the warps' parts of a piece, and write.
__device__ void write_sums(Room& room, const Place& at, int t0, int steps, int rows, number* dq, number* dk,
                           float* ddecay, float* dbeta) {
  auto token = [&](int i, int head) {
    const long long origin = HEADS == 1 ? at.origin : at.origin_of(blockIdx.x * HEADS + head);
    return origin + (long long)(t0 + i) * at.H;
  };
  auto is_real = [&](int i, int head) { return i < steps && blockIdx.x * HEADS + head < rows; };
  constexpr int QUADS = N / 4, ALL_QUADS = 2 * SUB * HEADS * QUADS;
#pragma unroll
  for (int from = 0; from < ALL_QUADS; from += THREADS) {
    const int j = from + threadIdx.x, n = j % QUADS * 4, head = j / QUADS % HEADS, i = j / (QUADS * HEADS) % SUB;
    const bool of_key = j >= ALL_QUADS / 2;
    if (j < ALL_QUADS && is_real(i, head)) {
      float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
      for (int w = 0; w < OVER; w++) {
        const int number = of_key * SUMS + head % PARTS * N + n;
        const float4 x = *reinterpret_cast<float4*>(part_of(room.slots[i + 1], head * OVER / PARTS + w, number));
        sum = make_float4(sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w);
      }
      write_four((of_key ? dk : dq) + token(i, head) * N + n, sum);
    }
  }
  const int which = threadIdx.x % 2, head = threadIdx.x / 2 % HEADS, i = threadIdx.x / (2 * HEADS);
  if (i < SUB && is_real(i, head)) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < OVER; w++) {
      sum += *part_of(room.slots[i + 1], head * OVER / PARTS + w, 2 * SUMS + head % PARTS * 2 + which);
    }
    (which ? dbeta : ddecay)[token(i, head)] = sum;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    e88_backward(const number* q, const number* k, const number* v, const float* decay, const float* beta,
                 const float* kept, const number* dout, const float* dlast, float* scratch, number* dq, number* dk,
                 number* dv, float* ddecay, float* dbeta, float* dfirst, int T, int H, int QH, int rows) {
  __shared__ __align__(16) Room room;
  Staged& staged = room.staged;
  const Place at(T, H, QH, rows);
  const int chunks = (T + KEEP - 1) / KEEP;
  float4* bounds = reinterpret_cast<float4*>(scratch) + (long long)blockIdx.x * (KEEP / SUB) * N * 8 +
                   at.part * ROWS / 4 * 32 + at.slot;
  const bool writes = at.real && at.part == 0;
  dv += at.token(T - 1) * V + at.column;  // walks back with the steps
  float G[ROWS], S[ROWS];
  load_state(G, dlast + at.state());
  auto fetch = [&](int buffer, int t0, bool all) {
    stage<N, true>(0, at, staged.place(buffer, K_AT), k, t0, rows);
    stage<V, false>(1, at, staged.place(buffer, V_AT), v, t0, rows);
    stage_scalars(0, at, staged.decay[buffer], decay, t0, rows);
    stage_scalars(1, at, staged.beta[buffer], beta, t0, rows);
    if (all) {
      stage<N, true>(2, at, staged.place(buffer, Q_AT), q, t0, rows);
      stage<V, false>(3, at, staged.place(buffer, O_AT), dout, t0, rows);
    }
  };
  for (int chunk = chunks - 1; chunk >= 0; chunk--) {
    const int begin = chunk * KEEP, pieces = (min(KEEP, T - begin) + SUB - 1) / SUB;

    // Forward through the chunk, leaving the state before every piece of SUB steps but the last in scratch.
    fetch(0, begin, pieces == 1);
    load_state(S, kept + at.state((long long)at.row * chunks + chunk));
    for (int piece = 0; piece < pieces - 1; piece++) {
      const int buffer = piece & 1;
#pragma unroll
      for (int n = 0; n < ROWS; n += 4) {
        bounds[(piece * N / 4 + n / 4) * 32] = make_float4(S[n], S[n + 1], S[n + 2], S[n + 3]);
      }
      arrive();
      fetch(buffer ^ 1, begin + (piece + 1) * SUB, piece == pieces - 2);  // the last piece is walked back next
      const Sequences& given = staged.ready<Q_AT>(buffer);
      Reader from(given, staged, buffer, at);
#pragma unroll 1
      for (int i = 0; i < SUB; i++, from.move(1)) {
        float r;
        const float e = error_of(S, from.key, from.value(), from.beta(), r);
        step<false>(S, from.key, e, from.decay());
      }
    }

    // Back through the pieces, last first; S is the state before the last one.
    for (int piece = pieces - 1; piece >= 0; piece--) {
      const int t0 = begin + piece * SUB, buffer = piece & 1, steps = min(SUB, T - t0);
      arrive();
      if (piece > 0) fetch(buffer ^ 1, t0 - SUB, true);
      const Sequences& given = staged.ready<END>(buffer);
      Reader from(given, staged, buffer, at);
      Slot* slot = room.slots;
#pragma unroll 1
      for (int i = 0; i < steps; i++, slot++, from.move(1)) {
        slot->store(S, at);
        float r;
        const float e = error_of(S, from.key, from.value(), from.beta(), r);
        slot->r[at.slot] = r;
        step<true>(S, from.key, e, from.decay());
      }
      slot->store(S, at);
      __syncwarp();
      float4 next[ROWS / 4];  // the state before the piece before this one, on its way while this one is walked
      if (piece > 0) {
#pragma unroll
        for (int n = 0; n < ROWS / 4; n++) next[n] = bounds[((piece - 1) * N / 4 + n) * 32];
      }
#pragma unroll 1
      for (int i = steps - 1; i >= 0; i--) {
        from.move(-1);
        Slot& after = *slot--;
        const float *key = from.key, *query = from.key + Q_AT;
        const float value = from.value(), o = from.gradient();
        const float d = from.decay(), b = from.beta(), r = slot->r[at.slot];
        float of_query[EACH], of_key[EACH];
        sum_rows<true>(after, from.row + (O_AT - V_AT), at, of_query);  // dq = S do
        // out = S^T q and S = f(Z): G becomes the gradient in Z, and de = G^T k.
        float des[4] = {0, 0, 0, 0};
#pragma unroll
        for (int n = 0; n < ROWS; n += 4) {
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
        const float de = over_rows((des[0] + des[1]) + (des[2] + des[3]));
#if FORM == 2
        const float e = b * value, dr = 0, dvalue = b * de, drate = de * value;
#else
        const float e = fmaf(-b, r, value), dr = -b * de, dvalue = de, drate = -de * r;
#endif
        if (writes) *dv = narrow(dvalue);
        dv -= (long long)H * V;
        // Z = d S' + k e^T with e = v - beta S'^T k: G becomes the gradient in S', and dk = G e + S' dr over columns.
        float share[ROWS], sums[4] = {0, 0, 0, 0};
        slot->load(S, at);
#pragma unroll
        for (int n = 0; n < ROWS; n += 4) {
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
        __syncwarp();  // the rows of `after` have been read
        after.store(share, at);
        __syncwarp();
        sum_rows<false>(after, nullptr, at, of_key);
        // Both sums over the columns: with more lanes a column, the first two of them go on with one each.
        float decayed = over_rows((sums[0] + sums[1]) + (sums[2] + sums[3])), rated = drate;
        if (LANES > 1) decayed = at.part ? rated : decayed;
#pragma unroll
        for (int apart = HELD / 2; apart > 0; apart /= 2) {
          decayed += __shfl_xor_sync(ALL, decayed, apart);
          if (LANES == 1) rated += __shfl_xor_sync(ALL, rated, apart);
        }
        __syncwarp();
        store_parts(after, at, 0, of_query);
        store_parts(after, at, SUMS, of_key);
        if (at.part < 2 && at.slot % HELD == 0) {
          float* both = part_of(after, at.warp, 2 * SUMS + at.slot % COLUMNS / HELD * 2);
          both[at.part] = decayed;
          if (LANES == 1) both[1] = rated;
        }
      }
      __syncthreads();
      write_sums(room, at, t0, steps, rows, dq, dk, ddecay, dbeta);
#pragma unroll
      for (int n = 0; n < ROWS; n += 4) {
        S[n] = next[n / 4].x, S[n + 1] = next[n / 4].y, S[n + 2] = next[n / 4].z, S[n + 3] = next[n / 4].w;
      }
    }
  }
  if (at.real) store_state(G, dfirst + at.state());
}
