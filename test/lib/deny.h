// Owns: a kernel that refuses a system call: as an old one, a sandbox or a machine under pressure would.
// May include: test/lib/test.h, Linux headers.
// Called by: tests of what follows such a refusal, in a child, as it lasts for the rest of the process.
// Invariants: every other call is as before; refusals add up.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "test/lib/test.h"

// What stands for "whatever the argument is".
enum { MI_TEST_ANY = -1 };

// Has call `nr` fail with `err` in this process when the low 32 bits of its argument number `index` are `value`, or, with
// index MI_TEST_ANY, always. False where the machine has no such filters.
static MI_TEST_UNUSED bool mi_test_deny(long nr, int index, uint32_t value, int err) {
  const uint32_t low = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 4;
  const uint32_t at = (uint32_t)offsetof(struct seccomp_data, args) + 8U * (index < 0 ? 0U : (uint32_t)index) + low;
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((uint32_t)err & SECCOMP_RET_DATA)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  if (index < 0) {
    code[3] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 0, 0, 0);
  }
  const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
