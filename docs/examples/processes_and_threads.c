// A program that puts the allocator's messages into its log and watches how much memory it has.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "mimalloc.h"

static char log_text[4096];

static void log_message(const char* msg, void* arg) {
  (void)arg;  // not to allocate here: the allocator is at work
  strncat(log_text, msg, sizeof(log_text) - strlen(log_text) - 1);
}

static void note_error(int err, void* arg) { *(int*)arg = err; }

int main(void) {
  printf("interface %d, library %d\n", MI_MALLOC_VERSION, mi_version());
  int error = 0;
  mi_register_output(log_message, NULL);
  mi_register_error(note_error, &error);
  volatile size_t too_much = SIZE_MAX / 2;
  void* const none = mi_malloc(too_much);
  mi_register_error(NULL, NULL);

  mi_process_info_print();  // one line to the log
  mi_register_output(NULL, NULL);
  fputs(log_text, stdout);

  size_t resident, committed, faults;
  mi_process_info(NULL, NULL, NULL, &resident, NULL, &committed, NULL, &faults);
  printf("%zu KiB resident, %zu KiB committed, %zu page faults\n", resident / 1024, committed / 1024, faults);
  mi_collect(true);  // before a long sleep: give back what can be
  return none == NULL && (error == ENOMEM || error == EOVERFLOW) && log_text[0] != 0 ? 0 : 1;
}
