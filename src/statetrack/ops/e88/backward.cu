// The backward pass: the gradients, chunk by chunk of KEEP steps from the last. A chunk is run forward again from its
// kept state, leaving a state in scratch before each piece of SUB steps; then, last piece first, a piece is run again
// with its states in shared memory and walked back. cpu_loops.py spells out the gradients.
//
// Forward, lanes hold columns; walking back, a lane holds a tile of four rows by WIDE columns, which it takes from shared
// memory. The gradient of v is then a sum over the lanes above and below one another, those of q and k over the lanes
// beside one another, and neither takes many.

constexpr int QUADS = N / 4;                     // lanes above one another, of four rows each
constexpr int ACROSS = 32 / QUADS;               // lanes beside one another
constexpr int WIDE = COLUMNS / ACROSS;           // columns of a lane
constexpr int HELD = COLUMNS < V ? COLUMNS : V;  // columns of one head in a warp
constexpr int BESIDE = HELD / WIDE;              // lanes beside one another that hold them
static_assert(WIDE >= 2, "a lane holds pairs of columns");

// Number i of a tile: two rows by two columns come one after the other, as in shared memory.
__device__ constexpr int row_of(int i) { return i % 8 / 4 * 2 + i % 2; }
__device__ constexpr int column_of(int i) { return i / 8 * 2 + i % 4 / 2; }

struct Tile {  // where this lane works, walking back
  int quad, beside, first, head, column, row;  // first: the first of its columns among the block's 32
  bool real;
  __device__ Tile(int rows) {
    quad = threadIdx.x % 32 / ACROSS;
    beside = threadIdx.x % ACROSS;
    first = threadIdx.x / 32 * COLUMNS + beside * WIDE;
    head = first / V;
    column = first % V;
    row = blockIdx.x * HEADS + head;
    real = row < rows;
    if (!real) row = rows - 1;
  }
  __device__ long long state(int i) const {
    return (long long)row * N * V + (quad * 4 + row_of(i)) * V + column + column_of(i);
  }
};

// A tile of the state at the beginning of step t, with the noise of the step before.
__device__ void add_noise(float (&before)[ROWS], const float (&state)[ROWS], const Noise& noise, const Tile& tile, int T,
                          int t) {
  const Signs signs(noise, tile.row, T);
#if FILLED
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    before[i] = state[i];
    if (t > 0) before[i] += signs.at(t - 1, tile.quad * 4 + row_of(i), tile.column + column_of(i));
  }
#else
  unsigned bits[4 / IN_WORD];
  if (t > 0) signs.load(bits, t - 1, tile.quad * 4);
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    before[i] = state[i];
    if (t > 0) before[i] += signs.of(bits, row_of(i), tile.column + column_of(i));
  }
#endif
}

// A state in shared memory: two rows by two columns to 16 bytes, so placed that neither the lanes that write columns nor
// those that read tiles meet in a bank.
constexpr int PITCH = ACROSS == 8 ? 12 : ACROSS;             // between the pairs of columns of a lane
constexpr int SPAN = PITCH * (WIDE / 2 - 1) + ACROSS;        // pairs of a warp
constexpr int LINE = SPAN * LANES + (ACROSS == 4 ? 2 : 0);   // of a block

struct Slot {
  float4 pairs[N / 2][LINE];
  float e[32];  // e of the step from here; later the gradients of decay and beta, a pair for HELD columns
  __device__ float2* place(const Place& at) {  // of this lane's column
    const int column = at.slot % COLUMNS, of_tile = column % WIDE;
    float4* four = &pairs[at.part * ROWS / 2][at.warp * SPAN + column / WIDE + of_tile / 2 * PITCH];
    return reinterpret_cast<float2*>(four) + of_tile % 2;
  }
  static __device__ void store(float2* place, const float (&S)[ROWS]) {
#pragma unroll
    for (int n = 0; n < ROWS; n += 2) place[n * LINE] = make_float2(S[n], S[n + 1]);
  }
  __device__ void load(float (&S)[ROWS], const Tile& tile) const {
    const float4* from = &pairs[tile.quad * 2][tile.first / COLUMNS * SPAN + tile.beside];
#pragma unroll
    for (int i = 0; i < ROWS; i += 4) {
      const float4 four = from[i / 8 * PITCH + i % 8 / 4 * LINE];
      S[i] = four.x, S[i + 1] = four.y, S[i + 2] = four.z, S[i + 3] = four.w;
    }
  }
  // A lane's sums of a step over its columns, four of dq or of dk: in the place of a state that is not needed any more.
  __device__ float4& sums(int warp, int lane, bool of_key) {
    constexpr int SIDE = COLUMNS / 2;
    return pairs[of_key * 32 / SIDE + lane / SIDE][warp * SPAN + lane % SIDE];
  }
};

// sums += S x, over this lane's columns.
__device__ void add_columns(float (&sums)[4], const float (&S)[ROWS], const float (&x)[WIDE]) {
#pragma unroll
  for (int i = 0; i < ROWS; i++) sums[row_of(i)] = fmaf(S[i], x[column_of(i)], sums[row_of(i)]);
}

__device__ float4 to_quad(const float (&x)[4]) { return make_float4(x[0], x[1], x[2], x[3]); }

__device__ void write_two(number* to, float x, float y) {
#if HALF
  *reinterpret_cast<unsigned*>(to) = narrow(x) | (unsigned)narrow(y) << 16;
#else
  *reinterpret_cast<float2*>(to) = make_float2(x, y);
#endif
}

__device__ void write_four(number* to, float4 x) {
#if HALF
  uint2 both;
  both.x = narrow(x.x) | (unsigned)narrow(x.y) << 16;
  both.y = narrow(x.z) | (unsigned)narrow(x.w) << 16;
  *reinterpret_cast<uint2*>(to) = both;
#else
  *reinterpret_cast<float4*>(to) = x;
#endif
}

struct Room {  // the backward pass in shared memory, which decides how many blocks a multiprocessor holds
  Staged staged;
  Slot slots[SUB + 1];  // the states before each step of a piece, and after the last
};

// Add up the lanes' sums of a piece, and write.
__device__ void write_sums(Room& room, const Place& at, int t0, int steps, int rows, number* dq, number* dk,
                           float* ddecay, float* dbeta) {
  auto token = [&](int i, int head) {
    const long long origin = HEADS == 1 ? at.origin : at.origin_of(blockIdx.x * HEADS + head);
    return origin + (long long)(t0 + i) * at.H;
  };
  auto is_real = [&](int i, int head) { return i < steps && blockIdx.x * HEADS + head < rows; };
  constexpr int ALL_QUADS = 2 * SUB * HEADS * QUADS;
#pragma unroll
  for (int from = 0; from < ALL_QUADS; from += THREADS) {
    const int j = from + threadIdx.x, quad = j % QUADS, head = j / QUADS % HEADS, i = j / (QUADS * HEADS) % SUB;
    const bool of_key = j >= ALL_QUADS / 2;
    const int turn = BESIDE > 1 ? quad / 4 % 2 : 0;  // so that fewer lanes meet in a bank
    if (j < ALL_QUADS && is_real(i, head)) {
      float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
      for (int column = 0; column < V; column += WIDE) {
        const int place = head * V + column, beside = place % COLUMNS / WIDE ^ turn;
        const float4 x = room.slots[i + 1].sums(place / COLUMNS, quad * ACROSS + beside, of_key);
        sum = make_float4(sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w);
      }
      write_four((of_key ? dk : dq) + token(i, head) * N + quad * 4, sum);
    }
  }
  const int which = threadIdx.x % 2, head = threadIdx.x / 2 % HEADS, i = threadIdx.x / (2 * HEADS);
  if (i < SUB && is_real(i, head)) {
    float sum = 0;
#pragma unroll
    for (int column = 0; column < V; column += HELD) sum += room.slots[i].e[head * V + column + which];
    (which ? dbeta : ddecay)[token(i, head)] = sum;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    e88_backward(const number* q, const number* k, const number* v, const float* decay, const float* beta,
                 const float* first, const float* kept, const number* dout, const float* dlast, float* scratch, number* dq, number* dk,
                 number* dv, float* ddecay, float* dbeta, float* dfirst, const unsigned* words, double size, int per_step,
                 int replica, int n_true, int width, int T, int H, int QH, int rows) {
  __shared__ __align__(16) Room room;
  Staged& staged = room.staged;
  const Place at(T, H, QH, rows);
  const Noise noise{words, (float)size, per_step, replica, n_true, width};
  const int chunks = (T + KEEP - 1) / KEEP;
  float4* bounds = reinterpret_cast<float4*>(scratch) + (long long)blockIdx.x * (KEEP / SUB) * N * 8 +
                   at.part * ROWS / 4 * 32 + at.slot;
  const Tile tile(rows);
  float2* const first_place = room.slots[0].place(at);
  const bool writes = tile.real && tile.quad == 0;
  dv += (at.origin_of(tile.row) + (long long)(T - 1) * H) * V + tile.column;  // walks back with the steps
  float S[ROWS], G[ROWS];  // G: the gradient in the state, a tile
#pragma unroll
  for (int i = 0; i < ROWS; i++) G[i] = dlast[tile.state(i)];
  Feed feed(staged, at, rows);
  auto fetch = [&](int buffer, int t0, bool all) {
    feed.fetch_keys(buffer, k, q, decay, all, t0);
    feed.fetch_values(buffer, v, dout, beta, all, t0);
  };
  // The state before a chunk, packed if it is kept so; the first is given.
  auto load_before = [&](float (&to)[ROWS], int chunk) {
    if (chunk > 0) {
      load_column(to, kept + kept_at(at, chunk), ROWS / IN_ONE);
    } else {
      load_column(to, first + at.state());
    }
  };
  auto put_before = [&](const float (&held)[ROWS], int chunk) {
    if (chunk > 0) {
      unpack(S, held);
    } else {
      copy_rows(S, held);
    }
  };
  auto pieces_of = [&](int chunk) { return (min(KEEP, T - chunk * KEEP) + SUB - 1) / SUB; };
  float next[ROWS];  // what S is next, on its way while a piece is walked back
  int buffer = 0;
  fetch(buffer, (chunks - 1) * KEEP, pieces_of(chunks - 1) == 1);
  load_before(next, chunks - 1);
  put_before(next, chunks - 1);
  for (int chunk = chunks - 1; chunk >= 0; chunk--) {
    const int begin = chunk * KEEP, pieces = pieces_of(chunk);

    Bounds limits(chunk == 0, noise);

    // Forward through the chunk, leaving the state before every piece of SUB steps but the last in scratch.
    for (int piece = 0; piece < pieces - 1; piece++, buffer ^= 1) {
#pragma unroll
      for (int n = 0; n < ROWS; n += 4) {
        bounds[(piece * N / 4 + n / 4) * 32] = make_float4(S[n], S[n + 1], S[n + 2], S[n + 3]);
      }
      feed.arrive(buffer);
      fetch(buffer ^ 1, begin + (piece + 1) * SUB, piece == pieces - 2);  // the last piece is walked back next
      limits.look_at(staged.given[buffer].k, at.lane);
      Reader from(staged, buffer, at.head, at.part * ROWS, at.slot);
#pragma unroll 1
      for (int i = 0; i < SUB; i++, from.move(1)) {
        float key[ROWS];
        read_some(from.key, key);
        add_noise(S, noise, at, begin + piece * SUB + i);
        const float e = error_of(S, key, from.value(), from.beta());
        step(S, key, e, from.decay(), limits.small(e, from.decay()));
      }
    }

    // Back through the pieces, last first; S is the state before the last one.
    for (int piece = pieces - 1; piece >= 0; piece--, buffer ^= 1) {
      const int t0 = begin + piece * SUB, steps = min(SUB, T - t0);
      feed.arrive(buffer);
      if (piece > 0) {
        fetch(buffer ^ 1, t0 - SUB, true);
      } else if (chunk > 0) {
        fetch(buffer ^ 1, begin - KEEP, KEEP == SUB);
      }
      limits = Bounds(chunk == 0 && piece == 0, noise);
      limits.look_at(staged.given[buffer].k, at.lane);
      Reader from(staged, buffer, at.head, at.part * ROWS, at.slot);
      Slot* slot = room.slots;
      float2* place = first_place;
#pragma unroll 1
      for (int i = 0; i < steps; i++, slot++, place += sizeof(Slot) / sizeof(float2), from.move(1)) {
        Slot::store(place, S);
        float key[ROWS];
        read_some(from.key, key);
        add_noise(S, noise, at, t0 + i);
        const float e = error_of(S, key, from.value(), from.beta());
        slot->e[at.slot] = e;
        step(S, key, e, from.decay(), limits.small(e, from.decay()));
      }
      Slot::store(place, S);
      __syncwarp();
      if (piece > 0) {
#pragma unroll
        for (int n = 0; n < ROWS; n += 4) {
          const float4 four = bounds[((piece - 1) * N / 4 + n / 4) * 32];
          next[n] = four.x, next[n + 1] = four.y, next[n + 2] = four.z, next[n + 3] = four.w;
        }
      } else if (chunk > 0) {
        load_before(next, chunk - 1);
      }
      from = Reader(staged, buffer, tile.head, tile.quad * 4, tile.first);
      from.move(steps);
      float state[ROWS];  // after a step, then before it, without its noise
      slot->load(state, tile);
#pragma unroll 1
      for (int i = steps; i > 0; i--) {
        from.move(-1);
        Slot& done = *slot--;
        float query[4], key[4], e[WIDE], o[WIDE];
        read_some(from.key, key);
        read_some(from.key + Q_AT, query);
        read_some(slot->e + tile.first, e);
        read_some(from.own + Q_AT, o);
        const float d = from.decay(), b = from.beta();
        // out = S^T q and S = f(Z): G becomes the gradient in Z, and de = G^T k.
        float of_query[4] = {0, 0, 0, 0}, of_key[4] = {0, 0, 0, 0};
        add_columns(of_query, state, o);  // dq = S do
        float de[WIDE];
#pragma unroll
        for (int c = 0; c < WIDE; c++) de[c] = 0;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
          const int n = row_of(i), c = column_of(i);
          float g = fmaf(query[n], o[c], G[i]);
#if FORM == 0
          g = fmaf(-g * state[i], state[i], g);
#endif
          de[c] = fmaf(g, key[n], de[c]);
          G[i] = g;
        }
        slot->load(state, tile);
#if NOISY
        float before[ROWS];
        add_noise(before, state, noise, tile, T, t0 + i - 1);
#else
        const float(&before)[ROWS] = state;
#endif
#pragma unroll
        for (int apart = ACROSS; apart < 32; apart *= 2) {
#pragma unroll
          for (int c = 0; c < WIDE; c++) de[c] += __shfl_xor_sync(ALL, de[c], apart);
        }
        // Z = d S' + k e^T: G becomes the gradient in S', and over columns dk = G e. With the delta rule, where
        // e = v - beta S'^T k, dk has -beta S' de as well, and dbeta is -k . S' de.
        add_columns(of_key, G, e);
        float decayed = 0, rated = 0;
#if FORM == 2
        float value[WIDE];
        read_some(from.own, value);
#pragma unroll
        for (int c = 0; c < WIDE; c++) {  // e = beta v
          rated = fmaf(de[c], value[c], rated);
          de[c] *= b;
        }
        if (tile.quad) rated = 0;  // lanes above one another have the same
#else
        float of_error[4] = {0, 0, 0, 0};
        add_columns(of_error, before, de);
#pragma unroll
        for (int n = 0; n < 4; n++) {
          of_key[n] = fmaf(-b, of_error[n], of_key[n]);
          rated = fmaf(-key[n], of_error[n], rated);
        }
#endif
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
          decayed = fmaf(G[i], before[i], decayed);
          G[i] *= d;
#if FORM != 2
          G[i] = fmaf(key[row_of(i)] * -b, de[column_of(i)], G[i]);
#endif
        }
        if (writes) {
#pragma unroll
          for (int c = 0; c < WIDE; c += 2) write_two(dv + c, de[c], de[c + 1]);
        }
        dv -= (long long)H * V;
        // Both sums over the columns of a head, after one exchange a half of the lanes for each.
        const bool lower = tile.quad >= QUADS / 2;
        float both = lower ? rated : decayed;
        both += __shfl_xor_sync(ALL, lower ? decayed : rated, 16);
#pragma unroll
        for (int apart = 8; apart > 0; apart /= 2) {
          if (apart >= ACROSS || apart < BESIDE) both += __shfl_xor_sync(ALL, both, apart);
        }
        __syncwarp();  // `done` and e have been read
        done.sums(at.warp, at.lane, false) = to_quad(of_query);
        done.sums(at.warp, at.lane, true) = to_quad(of_key);
        if (tile.quad % (QUADS / 2) == 0 && tile.beside % BESIDE == 0) slot->e[tile.first + lower] = both;
      }
      __syncthreads();
      write_sums(room, at, t0, steps, rows, dq, dk, ddecay, dbeta);
      put_before(next, piece > 0 ? 0 : chunk - 1);
    }
  }
  if (tile.real) {
#pragma unroll
    for (int i = 0; i < ROWS; i++) dfirst[tile.state(i)] = G[i];
  }
}
