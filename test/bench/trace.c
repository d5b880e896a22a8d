// Owns: `bench @trace`: tiny fixed traces whose calls an instruction counter attributes to malloc and to free.
// May include: bench.h, libc, pthread.
// Called by: run.py --callgrind.
// Invariants: trace_allocate and trace_release call nothing but the function under count, through a pointer, so that no call stub is counted.
#include "bench.h"

#include <pthread.h>
#include <string.h>

enum { TRACE_BATCH = 32 };
static void* trace_block[TRACE_BATCH];
static size_t trace_count = TRACE_BATCH;  // blocks in a batch
static size_t trace_size;

void trace_allocate(void* (*volatile* allocate)(size_t), size_t size);
void trace_release(void (*volatile* release)(void*));

__attribute__((noinline)) void trace_allocate(void* (*volatile* allocate)(size_t), size_t size) {
  for (size_t i = 0; i < trace_count; i++) trace_block[i] = (*allocate)(size);
}

__attribute__((noinline)) void trace_release(void (*volatile* release)(void*)) {
  for (size_t i = 0; i < trace_count; i++) (*release)(trace_block[i]);
}

static void* zeroed(size_t size) { return calloc(1, size); }  // three instructions more than calloc itself

static void* (*volatile allocate_function)(size_t);
static void (*volatile release_function)(void*);

static void* allocate_in_thread(void* arg) {  // hands its batches to the main thread, which frees them
  pthread_barrier_t* turn = arg;
  for (;;) {
    pthread_barrier_wait(turn);
    if (trace_size == 0) return NULL;
    trace_allocate(&allocate_function, trace_size);
    pthread_barrier_wait(turn);
  }
}

// Arguments: pair (batches of one block), or local, remote, zero (batches of 32); the size; the number of batches.
int trace_main(int argc, char** argv) {
  if (argc != 3) die("@trace pair|local|remote|zero <size> <batches>");
  trace_size = strtoul(argv[1], NULL, 10);
  size_t batches = strtoul(argv[2], NULL, 10);
  bool remote = strcmp(argv[0], "remote") == 0;
  if (strcmp(argv[0], "pair") == 0) trace_count = 1;
  allocate_function = strcmp(argv[0], "zero") == 0 ? &zeroed : &malloc;
  release_function = &free;
  pthread_t thread;
  pthread_barrier_t turn;
  pthread_barrier_init(&turn, NULL, 2);
  if (remote && pthread_create(&thread, NULL, allocate_in_thread, &turn) != 0) die("no thread could be started");
  for (size_t i = 0; i < batches; i++) {
    if (remote) {
      pthread_barrier_wait(&turn);
      pthread_barrier_wait(&turn);
    } else {
      trace_allocate(&allocate_function, trace_size);
    }
    trace_release(&release_function);
  }
  if (remote) {
    trace_size = 0;
    pthread_barrier_wait(&turn);
    pthread_join(thread, NULL);
  }
  return 0;
}
