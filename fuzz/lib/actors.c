// Owns: the threads that act in turn.
// May include: fuzz/lib, POSIX threads.
// Called by: through actors.h.
// Invariants: only the first thread calls in here.
#include "fuzz/lib/actors.h"

#include <pthread.h>
#include <stddef.h>

#include "fuzz/lib/fuzz.h"

typedef struct mi_fuzz_actor_s {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool there;
  bool ends;
  void (*step)(void*);  // what it is to do; NULL when it is done
  void* arg;
} mi_fuzz_actor_t;

static mi_fuzz_actor_t mi_fuzz_actors[MI_FUZZ_ACTORS];

static void* mi_fuzz_actor_run(void* self) {
  mi_fuzz_actor_t* const actor = self;
  pthread_mutex_lock(&actor->lock);
  while (!actor->ends) {
    if (actor->step != NULL) {
      actor->step(actor->arg);
      actor->step = NULL;
      pthread_cond_broadcast(&actor->changed);
    }
    if (!actor->ends) {
      pthread_cond_wait(&actor->changed, &actor->lock);
    }
  }
  pthread_mutex_unlock(&actor->lock);
  return NULL;
}

bool mi_fuzz_actor_is_there(unsigned actor) { return actor == 0 || mi_fuzz_actors[actor].there; }

static void mi_fuzz_actor_start(mi_fuzz_actor_t* actor, void (*step)(void*), void* arg) {
  if (!actor->there) {
    pthread_mutex_init(&actor->lock, NULL);
    pthread_cond_init(&actor->changed, NULL);
    actor->there = true;
    actor->ends = false;
    actor->step = NULL;
    MI_FUZZ_CHECK(pthread_create(&actor->thread, NULL, &mi_fuzz_actor_run, actor) == 0, "the system starts no thread");
  }
  pthread_mutex_lock(&actor->lock);
  actor->step = step;
  actor->arg = arg;
  pthread_cond_broadcast(&actor->changed);
  pthread_mutex_unlock(&actor->lock);
}

static void mi_fuzz_actor_wait(mi_fuzz_actor_t* actor) {
  pthread_mutex_lock(&actor->lock);
  while (actor->step != NULL) {
    pthread_cond_wait(&actor->changed, &actor->lock);
  }
  pthread_mutex_unlock(&actor->lock);
}

void mi_fuzz_act(unsigned index, void (*step)(void*), void* arg) {
  if (index == 0) {
    step(arg);
    return;
  }
  mi_fuzz_actor_start(&mi_fuzz_actors[index], step, arg);
  mi_fuzz_actor_wait(&mi_fuzz_actors[index]);
}

typedef struct mi_fuzz_part_s {
  void (*step)(unsigned actor, void* arg);
  unsigned actor;
  void* arg;
  pthread_barrier_t* ready;
} mi_fuzz_part_t;

static void mi_fuzz_part_run(void* arg) {
  const mi_fuzz_part_t* const part = arg;
  pthread_barrier_wait(part->ready);
  part->step(part->actor, part->arg);
}

void mi_fuzz_act_at_once(void (*step)(unsigned actor, void*), void* arg) {
  mi_fuzz_part_t parts[MI_FUZZ_ACTORS];
  pthread_barrier_t ready;
  MI_FUZZ_CHECK(pthread_barrier_init(&ready, NULL, MI_FUZZ_ACTORS) == 0, "the system has no barrier");
  for (unsigned i = 0; i < MI_FUZZ_ACTORS; i++) {
    parts[i] = (mi_fuzz_part_t){step, i, arg, &ready};
    if (i > 0) {
      mi_fuzz_actor_start(&mi_fuzz_actors[i], &mi_fuzz_part_run, &parts[i]);
    }
  }
  mi_fuzz_part_run(&parts[0]);
  for (unsigned i = 1; i < MI_FUZZ_ACTORS; i++) {
    mi_fuzz_actor_wait(&mi_fuzz_actors[i]);
  }
  pthread_barrier_destroy(&ready);
}

void mi_fuzz_end_actor(unsigned index) {
  mi_fuzz_actor_t* const actor = &mi_fuzz_actors[index];
  if (index == 0 || !actor->there) {
    return;
  }
  pthread_mutex_lock(&actor->lock);
  actor->ends = true;
  pthread_cond_broadcast(&actor->changed);
  pthread_mutex_unlock(&actor->lock);
  pthread_join(actor->thread, NULL);
  pthread_cond_destroy(&actor->changed);
  pthread_mutex_destroy(&actor->lock);
  actor->there = false;
}
