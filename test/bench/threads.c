// Owns: workloads of several threads: private work, hand-over through a queue, blocks that bleed between servers, short threads, many threads.
// May include: bench.h, libc, pthread.
// Called by: main.c through thread_workloads.
// Invariants: sums are commutative and each piece of work has its own random state, so that the checksum does not depend on the schedule.
#include "bench.h"

#include <pthread.h>

enum { MAX_THREADS = 1024 };

static void start_thread(pthread_t* thread, size_t stack, void* (*run)(void*), void* arg) {
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  if (stack != 0) pthread_attr_setstacksize(&attr, stack);
  if (pthread_create(thread, &attr, run, arg) != 0) die("no thread could be started");
  pthread_attr_destroy(&attr);
}

static size_mix_t mix_of_threads;  // filled before the first thread starts

// ---- private work: every thread replaces blocks among its own slots ----
enum { PRIVATE_SLOTS = 2048 };
typedef struct private_s {
  pthread_t thread;
  size_t steps;
  uint64_t seed;
  uint64_t sum;
  void* block[PRIVATE_SLOTS];
  size_t size[PRIVATE_SLOTS];
} private_t;

static void* private_run(void* arg) {
  private_t* w = arg;
  rng_t r = {w->seed};
  uint64_t sum = 0;
  for (size_t i = 0; i < w->steps; i++) {
    uint64_t random = rng_next(&r);
    size_t k = (random >> 32) & (PRIVATE_SLOTS - 1);
    if (w->block[k] != NULL) checked_free(w->block[k], w->size[k], k);
    w->size[k] = mix_draw(&mix_of_threads, random);
    w->block[k] = must_malloc(w->size[k]);
    mark(w->block[k], w->size[k], k);
    sum += w->size[k] ^ random;
  }
  for (size_t k = 0; k < PRIVATE_SLOTS; k++) free(w->block[k]);
  w->sum = sum;
  return NULL;
}

static uint64_t private_work(unsigned scale, size_t threads) {
  static private_t workers[2];
  mix_log_uniform(&mix_of_threads, 16, 1024);
  for (size_t t = 0; t < threads; t++) {
    workers[t].steps = scaled(5000000, scale, 20000);
    workers[t].seed = 401 + t;
    start_thread(&workers[t].thread, 0, private_run, &workers[t]);
  }
  uint64_t sum = 0;
  for (size_t t = 0; t < threads; t++) {
    pthread_join(workers[t].thread, NULL);
    sum += workers[t].sum;
  }
  return sum;
}

static uint64_t private_1(unsigned scale) { return private_work(scale, 1); }
static uint64_t private_2(unsigned scale) { return private_work(scale, 2); }

// ---- hand-over: a producer allocates and fills, its consumer checks and frees; whole batches cross, and a
// sleeper is woken for half a queue at a time, so that the hand-over itself costs little ----
enum { BATCH = 512,
       QUEUE = 16 };
typedef struct batch_s {
  void* block[BATCH];
  uint32_t size[BATCH];
} batch_t;

typedef struct pair_s {
  pthread_t producer, consumer;
  pthread_mutex_t mutex;
  pthread_cond_t not_full, not_empty;
  size_t head, tail;  // batches produced and consumed so far
  size_t batches;
  uint64_t seed, sum;
  batch_t queue[QUEUE];
} pair_t;

static void* produce(void* arg) {
  pair_t* p = arg;
  rng_t r = {p->seed};
  for (size_t i = 0; i < p->batches; i++) {
    pthread_mutex_lock(&p->mutex);
    while (p->head - p->tail == QUEUE) pthread_cond_wait(&p->not_full, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
    batch_t* b = &p->queue[i % QUEUE];
    for (size_t k = 0; k < BATCH; k++) {
      size_t size = mix_draw(&mix_of_threads, rng_next(&r));
      b->size[k] = (uint32_t)size;
      b->block[k] = must_malloc(size);
      mark(b->block[k], size, i + k);
    }
    pthread_mutex_lock(&p->mutex);
    p->head++;
    if (p->head - p->tail >= QUEUE / 2 || p->head == p->batches) pthread_cond_signal(&p->not_empty);
    pthread_mutex_unlock(&p->mutex);
  }
  return NULL;
}

static void* consume(void* arg) {
  pair_t* p = arg;
  uint64_t sum = 0;
  for (size_t i = 0; i < p->batches; i++) {
    pthread_mutex_lock(&p->mutex);
    while (p->head == p->tail) pthread_cond_wait(&p->not_empty, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
    batch_t* b = &p->queue[i % QUEUE];
    for (size_t k = 0; k < BATCH; k++) {
      sum += b->size[k];
      checked_free(b->block[k], b->size[k], i + k);
    }
    pthread_mutex_lock(&p->mutex);
    p->tail++;
    if (p->head - p->tail <= QUEUE / 2) pthread_cond_signal(&p->not_full);
    pthread_mutex_unlock(&p->mutex);
  }
  p->sum = sum;
  return NULL;
}

static uint64_t hand_over(unsigned scale, size_t pairs) {
  static pair_t pair[2];
  mix_log_uniform(&mix_of_threads, 16, 512);
  for (size_t t = 0; t < pairs; t++) {
    pair_t* p = &pair[t];
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->not_full, NULL);
    pthread_cond_init(&p->not_empty, NULL);
    p->batches = scaled(8000 / pairs, scale, 40);
    p->seed = 411 + t;
    start_thread(&p->producer, 0, produce, p);
    start_thread(&p->consumer, 0, consume, p);
  }
  uint64_t sum = 0;
  for (size_t t = 0; t < pairs; t++) {
    pthread_join(pair[t].producer, NULL);
    pthread_join(pair[t].consumer, NULL);
    sum += pair[t].sum;
  }
  return sum;
}

static uint64_t prodcons_1(unsigned scale) { return hand_over(scale, 1); }
static uint64_t prodcons_2(unsigned scale) { return hand_over(scale, 2); }

// The same batches made and freed by one thread: what hand-over work costs without a second thread.
static uint64_t prodcons_0(unsigned scale) {
  static batch_t queue[QUEUE];
  mix_log_uniform(&mix_of_threads, 16, 512);
  size_t batches = scaled(8000, scale, 40);
  rng_t r = {411};
  uint64_t sum = 0;
  for (size_t i = 0; i < batches + QUEUE; i++) {
    batch_t* b = &queue[i % QUEUE];
    for (size_t k = 0; k < BATCH; k++) {
      if (i >= QUEUE) {
        sum += b->size[k];
        checked_free(b->block[k], b->size[k], i - QUEUE + k);
      }
      if (i < batches) {
        size_t size = mix_draw(&mix_of_threads, rng_next(&r));
        b->size[k] = (uint32_t)size;
        b->block[k] = must_malloc(size);
        mark(b->block[k], size, i + k);
      }
    }
  }
  return sum;
}

// ---- bleeding: sessions are served by whichever server is free, so a block is mostly freed by another thread than its owner ----
enum { SESSIONS = 24,
       SESSION_SLOTS = 512,
       SERVERS = 4,
       VISIT_STEPS = 2000 };
typedef struct session_s {
  rng_t random;
  size_t visits_left;
  uint64_t sum;
  void* block[SESSION_SLOTS];
  uint32_t size[SESSION_SLOTS];
} session_t;

static struct {
  pthread_mutex_t mutex;
  session_t* waiting[SESSIONS];  // a ring
  size_t first, count;
  size_t unfinished;
} desk = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void session_visit(session_t* s) {
  for (size_t i = 0; i < VISIT_STEPS; i++) {
    uint64_t random = rng_next(&s->random);
    size_t k = (random >> 32) & (SESSION_SLOTS - 1);
    if (s->block[k] != NULL) checked_free(s->block[k], s->size[k], k);
    s->size[k] = (uint32_t)mix_draw(&mix_of_threads, random);
    s->block[k] = must_malloc(s->size[k]);
    mark(s->block[k], s->size[k], k);
    s->sum += s->size[k] ^ random;
  }
}

static void* serve(void* arg) {
  (void)arg;
  session_t* s = NULL;
  for (;;) {
    pthread_mutex_lock(&desk.mutex);
    if (s != NULL) {
      if (--s->visits_left > 0) desk.waiting[(desk.first + desk.count++) % SESSIONS] = s;
      else desk.unfinished--;
    }
    s = NULL;
    if (desk.count > 0) {  // sessions being served elsewhere are finished there
      s = desk.waiting[desk.first];
      desk.first = (desk.first + 1) % SESSIONS;
      desk.count--;
    }
    pthread_mutex_unlock(&desk.mutex);
    if (s == NULL) return NULL;
    session_visit(s);
  }
}

static uint64_t bleed(unsigned scale) {
  static session_t sessions[SESSIONS];
  mix_log_uniform(&mix_of_threads, 16, 1024);
  desk.unfinished = SESSIONS;
  for (size_t i = 0; i < SESSIONS; i++) {
    sessions[i].random.state = 421 + i;
    sessions[i].visits_left = scaled(110, scale, 4);
    desk.waiting[desk.count++] = &sessions[i];
  }
  pthread_t server[SERVERS];
  for (size_t t = 0; t < SERVERS; t++) start_thread(&server[t], 0, serve, NULL);
  for (size_t t = 0; t < SERVERS; t++) pthread_join(server[t], NULL);
  if (desk.unfinished != 0) die("a session was lost");
  uint64_t sum = 0;
  for (size_t i = 0; i < SESSIONS; i++) {
    sum += sessions[i].sum;
    for (size_t k = 0; k < SESSION_SLOTS; k++) free(sessions[i].block[k]);
  }
  return sum;
}

// ---- short threads: each frees what its predecessor in the lane left, works a little, leaves blocks for its successor ----
enum { LANES = 2,
       LEFT = 256 };
typedef struct lane_s {
  pthread_t thread;
  uint64_t seed, sum;
  void* left[LEFT];
  uint32_t size[LEFT];
} lane_t;

static void* short_life(void* arg) {
  lane_t* lane = arg;
  rng_t r = {lane->seed};
  for (size_t i = 0; i < 1000; i++) {
    uint64_t random = rng_next(&r);
    size_t k = (random >> 32) & (LEFT - 1);
    if (lane->left[k] != NULL) checked_free(lane->left[k], lane->size[k], k);
    lane->size[k] = (uint32_t)mix_draw(&mix_of_threads, random);
    lane->left[k] = must_malloc(lane->size[k]);
    mark(lane->left[k], lane->size[k], k);
    lane->sum += lane->size[k];
  }
  return NULL;
}

static uint64_t thread_churn(unsigned scale) {
  static lane_t lanes[LANES];
  mix_log_uniform(&mix_of_threads, 16, 1024);
  size_t rounds = scaled(2500, scale, 20);
  for (size_t round = 0; round < rounds; round++) {
    for (size_t t = 0; t < LANES; t++) {
      lanes[t].seed = 431 + round * LANES + t;
      start_thread(&lanes[t].thread, 64 * 1024, short_life, &lanes[t]);
    }
    for (size_t t = 0; t < LANES; t++) pthread_join(lanes[t].thread, NULL);
  }
  uint64_t sum = 0;
  for (size_t t = 0; t < LANES; t++) {
    sum += lanes[t].sum;
    for (size_t k = 0; k < LEFT; k++) free(lanes[t].left[k]);
  }
  return sum;
}

// ---- many threads alive at once, each holding little: what a thread costs, in memory first ----
static pthread_barrier_t everyone;
static uint64_t sums_of_many[MAX_THREADS];

static void* hold_little(void* arg) {
  size_t self = (size_t)(uintptr_t)arg;
  void* block[48];
  uint64_t sum = 0;
  for (size_t k = 0; k < 48; k++) {
    size_t size = mix_draw(&mix_of_threads, self * 48 + k);
    block[k] = must_malloc(size);
    mark(block[k], size, self);
    sum += size;
  }
  pthread_barrier_wait(&everyone);
  for (size_t k = 0; k < 48; k++) checked_free(block[k], mix_draw(&mix_of_threads, self * 48 + k), self);
  sums_of_many[self] += sum;
  return NULL;
}

static uint64_t thread_many(unsigned scale) {
  static pthread_t threads[MAX_THREADS];
  size_t count = scaled(MAX_THREADS, scale < 100 ? scale : 100, 32);
  size_t rounds = scaled(4, scale, 1);
  mix_log_uniform(&mix_of_threads, 16, 1024);
  for (size_t round = 0; round < rounds; round++) {
    pthread_barrier_init(&everyone, NULL, (unsigned)count);
    for (size_t t = 0; t < count; t++) start_thread(&threads[t], 64 * 1024, hold_little, (void*)(uintptr_t)t);
    for (size_t t = 0; t < count; t++) pthread_join(threads[t], NULL);
    pthread_barrier_destroy(&everyone);
  }
  uint64_t sum = 0;
  for (size_t t = 0; t < count; t++) sum += sums_of_many[t];
  return sum;
}

const workload_t thread_workloads[] = {
    {"private-1t", private_1, "one thread replaces blocks of 16 B-1 KiB among its own slots"},
    {"private-2t", private_2, "two threads do so, each as much as the one above"},
    {"prodcons-0", prodcons_0, "batches of 16-512 B made and freed by one thread"},
    {"prodcons-1", prodcons_1, "as many batches made by one thread and freed by another"},
    {"prodcons-2", prodcons_2, "as many batches through two such pairs"},
    {"bleed", bleed, "24 sessions of 512 blocks, served in turn by any of 4 threads"},
    {"thread-churn", thread_churn, "5000 short threads, each replaces blocks left by the one before"},
    {"thread-many", thread_many, "1024 threads alive at once, each holding 48 blocks of 16 B-1 KiB"},
    {NULL, NULL, NULL},
};
