// A card on a CPU, for tests: a block's threads are fibers that take turns at barriers, so that CUDA C++ runs, slowly,
// where there is no GPU. It stands in place of instructions.cuh.
//
// Between two barriers the threads run one after the other, first to last or (backwards) last to first: what needs a
// barrier that is missing comes out differently, unless a shuffle stands beside it, which is a barrier here and on a card
// is none for memory. Copies that go on in the background are done at once or (late) when
// they are waited for. A barrier that some threads never reach ends the program with a word.

#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#define __device__
#define __global__
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(8) float2 {
  float x, y;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline int min(int x, int y) { return x < y ? x : y; }
inline unsigned min(unsigned x, unsigned y) { return x < y ? x : y; }
inline unsigned max(unsigned x, unsigned y) { return x < y ? y : x; }
inline float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

inline unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

inline unsigned __byte_perm(unsigned x, unsigned y, unsigned which) {
  const std::uint64_t bytes = (std::uint64_t)y << 32 | x;
  unsigned picked = 0;
  for (int i = 0; i < 4; i++) picked |= (unsigned)(bytes >> (which >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  return picked;
}

struct Index {
  int x;
};
inline Index threadIdx, blockIdx;

enum State { READY, AT_WARP, AT_BLOCK, DONE };
struct Copy {
  void* to;
  const void* from;
  int bytes;
};
struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  State state;
  std::vector<Copy> copies;
};
constexpr int STACK = 1 << 16;
inline bool backwards, late;
inline std::vector<Fiber> fibers;
inline ucontext_t scheduler;
inline std::function<void()> kernel;
inline float exchanged[1024];

inline void pause(State state) {
  Fiber& mine = fibers[threadIdx.x];
  mine.state = state;
  swapcontext(&mine.context, &scheduler);
}
inline void __syncwarp() { pause(AT_WARP); }
inline void __syncthreads() { pause(AT_BLOCK); }
inline float __shfl_xor_sync(unsigned, float x, int apart) {
  const int mine = threadIdx.x;
  exchanged[mine] = x;
  __syncwarp();
  const float theirs = exchanged[mine ^ apart];
  __syncwarp();
  return theirs;
}
inline unsigned __reduce_max_sync(unsigned, unsigned x) {
  for (int apart = 16; apart > 0; apart /= 2) {
    x = max(x, __float_as_uint(__shfl_xor_sync(0, __uint_as_float(x), apart)));
  }
  return x;
}
inline bool __all_sync(unsigned, bool x) { return __reduce_max_sync(0, !x) == 0; }

inline bool release(int from, int to, State state) {
  bool waits = false;
  for (int i = from; i < to; i++) {
    if (fibers[i].state != state && fibers[i].state != DONE) return false;
    waits = waits || fibers[i].state == state;
  }
  for (int i = from; i < to; i++) {
    if (fibers[i].state == state) fibers[i].state = READY;
  }
  return waits;
}

inline void enter() {
  kernel();
  fibers[threadIdx.x].state = DONE;
  setcontext(&scheduler);
}

inline void run_block(int threads) {
  fibers.resize(threads);
  for (Fiber& fiber : fibers) {
    if (!fiber.stack) fiber.stack.reset(new char[STACK]);
    getcontext(&fiber.context);
    fiber.context.uc_stack = {fiber.stack.get(), 0, STACK};
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, enter, 0);
    fiber.state = READY;
    fiber.copies.clear();
  }
  for (;;) {
    bool moved = false, left = false;
    for (int i = 0; i < threads; i++) {
      const int turn = backwards ? threads - 1 - i : i;
      if (fibers[turn].state != READY) continue;
      moved = true;
      threadIdx.x = turn;
      swapcontext(&scheduler, &fibers[turn].context);
    }
    for (int i = 0; i < threads; i += 32) moved = release(i, i + 32, AT_WARP) || moved;
    moved = release(0, threads, AT_BLOCK) || moved;
    for (Fiber& fiber : fibers) left = left || fiber.state != DONE;
    if (!left) return;
    if (!moved) {
      std::fprintf(stderr, "threads wait at different barriers\n");
      std::abort();
    }
  }
}

template <typename... Given, typename... Wanted>
void launch(int blocks, int threads, void (*function)(Wanted...), Given... given) {
  kernel = [=] { function((Wanted)given...); };
  for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) run_block(threads);
}

inline float exp2_fast(float x) { return std::exp2(x); }
inline float reciprocal(float x) { return 1.0f / x; }
inline float tanh_fast(float x) { return std::tanh(x) * (1 + 0x1p-12f); }  // as far off as the real one may be
inline float smaller(float x, float y) { return x != x || x < y ? x : y; }
inline unsigned short to_bfloat16(float x) {  // to the nearest, ties to even
  const unsigned bits = __float_as_uint(x);
  if (x != x) return 0x7fff;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
inline void copy(void* to, const void* from, int bytes) {
  if (late) {
    fibers[threadIdx.x].copies.push_back({to, from, bytes});
  } else {
    std::memcpy(to, from, bytes);
  }
}
inline void copy_16(void* to, const void* from) { copy(to, from, 16); }
inline void copy_4(void* to, const void* from) { copy(to, from, 4); }
inline void wait_for_copies() {
  for (const Copy& one : fibers[threadIdx.x].copies) std::memcpy(one.to, one.from, one.bytes);
  fibers[threadIdx.x].copies.clear();
}
