// Owns: running inputs without libFuzzer: files and folders of them, and made-up ones; so any compiler can.
// May include: fuzz/lib, the C library.
// Called by: the replay tests.
// Invariants: prints nothing but findings and one line at the end.
//
//     program [--runs N] [--seed N] [--keep FILE] FILE|FOLDER...
//
// Runs every file, then N inputs that are made of them by changes. --keep: the input of a run that fails is written there.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/lib/fuzz.h"

enum { MI_REPLAY_MAX = 8192,
       MI_REPLAY_INPUTS = 4096 };

typedef struct mi_replay_input_s {
  uint8_t* data;
  size_t size;
} mi_replay_input_t;

static mi_replay_input_t mi_replay_inputs[MI_REPLAY_INPUTS];
static size_t mi_replay_count;
static uint64_t mi_replay_seed = 1;

static const char* mi_replay_keep;
static mi_replay_input_t mi_replay_now;

static void mi_replay_on_signal(int number) {
  if (mi_replay_keep != NULL) {
    const int file = open(mi_replay_keep, O_CREAT | O_TRUNC | O_WRONLY, 0666);
    (void)!write(file, mi_replay_now.data, mi_replay_now.size);
    close(file);
  }
  signal(number, SIG_DFL);
  raise(number);
}

static void mi_replay_run(uint8_t* data, size_t size) {
  mi_replay_now = (mi_replay_input_t){data, size};
  LLVMFuzzerTestOneInput(data, size);
}

// Of targets that have none of their own.
__attribute__((weak)) int LLVMFuzzerInitialize(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  return 0;
}

size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  const uint64_t r = mi_fuzz_random(&mi_replay_seed);
  const size_t at = size == 0 ? 0 : (size_t)(r >> 8) % size;
  if (size < max_size && (size == 0 || r % 4 == 0)) {
    memmove(data + at + 1, data + at, size - at);
    data[at] = (uint8_t)(r >> 40);
    return size + 1;
  }
  if (r % 4 == 1 && size > 1 && max_size > size) {
    memmove(data + at, data + at + 1, size - at - 1);
    return size - 1;
  }
  data[at] = (uint8_t)(r % 4 == 2 ? data[at] ^ 1U << (r >> 40) % 8 : r >> 40);
  return size;
}

__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  for (unsigned i = 0; i <= seed % 8; i++) {
    size = LLVMFuzzerMutate(data, size, max_size);
  }
  return size;
}

static void mi_replay_file(const char* name) {
  FILE* const file = fopen(name, "rb");
  if (file == NULL || mi_replay_count == MI_REPLAY_INPUTS) {
    fprintf(stderr, "replay: cannot read %s\n", name);
    exit(2);
  }
  mi_replay_input_t* const input = &mi_replay_inputs[mi_replay_count++];
  uint8_t buffer[MI_REPLAY_MAX];
  input->size = fread(buffer, 1, sizeof(buffer), file);
  fclose(file);
  // Exactly as large, so that a sanitizer sees what is read beyond.
  input->data = malloc(input->size + (input->size == 0));
  if (input->data == NULL) {
    exit(2);
  }
  memcpy(input->data, buffer, input->size);
  mi_replay_run(input->data, input->size);
}

static int mi_replay_by_name(const void* a, const void* b) { return strcmp(*(char* const*)a, *(char* const*)b); }

static void mi_replay_folder(const char* name) {
  DIR* const folder = opendir(name);
  if (folder == NULL) {
    fprintf(stderr, "replay: cannot read %s\n", name);
    exit(2);
  }
  static char* names[MI_REPLAY_INPUTS];
  size_t count = 0;
  for (struct dirent* entry = readdir(folder); entry != NULL && count < MI_REPLAY_INPUTS; entry = readdir(folder)) {
    if (entry->d_name[0] != '.') {
      const size_t size = strlen(name) + strlen(entry->d_name) + 2;
      names[count] = malloc(size);
      snprintf(names[count++], size, "%s/%s", name, entry->d_name);
    }
  }
  closedir(folder);
  qsort(names, count, sizeof(names[0]), &mi_replay_by_name);
  for (size_t i = 0; i < count; i++) {
    mi_replay_file(names[i]);
    free(names[i]);
  }
}

// Inputs are made of those that were read and of those that were made: there is no coverage to choose by.
static void mi_replay_made_up(size_t runs) {
  static uint8_t buffer[MI_REPLAY_MAX];
  size_t size = 0;
  for (size_t i = 0; i < runs; i++) {
    const uint64_t r = mi_fuzz_random(&mi_replay_seed);
    if (r % 8 == 0) {
      size = 0;
    }
    if (r % 4 == 1 && mi_replay_count > 0) {
      const mi_replay_input_t* const input = &mi_replay_inputs[(r >> 8) % mi_replay_count];
      size = input->size;
      memcpy(buffer, input->data, size);
    }
    for (uint64_t changes = 1 + (r >> 40) % 32; changes > 0; changes--) {
      size = LLVMFuzzerCustomMutator(buffer, size, sizeof(buffer), (unsigned)mi_fuzz_random(&mi_replay_seed));
    }
    mi_replay_run(buffer, size);
  }
}

int main(int argc, char** argv) {
  LLVMFuzzerInitialize(&argc, &argv);
  signal(SIGABRT, &mi_replay_on_signal);
  signal(SIGSEGV, &mi_replay_on_signal);
  size_t runs = 0;
  for (int i = 1; i < argc; i++) {
    struct stat about;
    if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc) {
      runs = strtoul(argv[++i], NULL, 10);
    } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      mi_replay_seed = strtoul(argv[++i], NULL, 10);
    } else if (strcmp(argv[i], "--keep") == 0 && i + 1 < argc) {
      mi_replay_keep = argv[++i];
    } else if (stat(argv[i], &about) == 0 && S_ISDIR(about.st_mode)) {
      mi_replay_folder(argv[i]);
    } else {
      mi_replay_file(argv[i]);
    }
  }
  mi_replay_made_up(runs);
  printf("replay: %zu inputs and %zu made-up ones\n", mi_replay_count, runs);
  return 0;
}
