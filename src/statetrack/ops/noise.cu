// The signs of the noise on a state, 64 to a word, for every time at once: ops/noise.py says of what they are a function.

typedef unsigned long long word;
constexpr word STEP = 0x9E3779B97F4A7C15ull;

__device__ word mix(word z) {
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ z >> 27) * 0x94D049BB133111EBull;
  return z ^ z >> 31;
}

// out (replicas, steps, count) from keys (replicas); `tensors` keys lie between two times.
extern "C" __global__ void noise_words(const word* keys, word* out, int replicas, int steps, int count, int tensors) {
  const long long place = (long long)blockIdx.x * THREADS + threadIdx.x;
  if (place >= (long long)replicas * steps * count) return;
  const long long time = place / count % steps, replica = place / count / steps;
  out[place] = mix(mix(keys[replica] + time * tensors * STEP) + (place % count + 1) * STEP);
}

// The keys of an update, out (replicas): statetrack/training/noise.py.
extern "C" __global__ void noise_keys(const word* keys, const word* updates, word* out, int replicas) {
  if (threadIdx.x < replicas) out[threadIdx.x] = mix(keys[threadIdx.x] + updates[threadIdx.x] * STEP);
}
