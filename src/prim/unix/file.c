// Owns: files that are written for the program or its operator.
// May include: prim, base, the C library's headers.
// Called by: through prim.h.
// Invariants: errno is untouched; no signal ends a write halfway, and no cancellation a thread: a call of malloc may be what writes.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/prim/prim.h"

// The system's calls are points where a thread may be cancelled.
static int mi_file_begin(void) {
  int before = PTHREAD_CANCEL_ENABLE;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}

static void mi_file_end(int before) { (void)pthread_setcancelstate(before, NULL); }

// Whether writing to the file can harm nobody but this user: there is one name for it, and it is this user's.
static bool mi_file_is_own(int fd) {
  struct stat st;
  return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_uid == geteuid();
}

static int mi_file_open(const char* path, bool careful, int* fd) {
  // A careful open waits for no reader of a pipe and empties nothing before the look at what it has opened.
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | (careful ? O_NOFOLLOW | O_NONBLOCK : O_TRUNC);
  *fd = open(path, flags, S_IRUSR | S_IWUSR);
  if (*fd < 0) {
    return errno;
  }
  if (!careful) {
    return 0;
  }
  const int error = !mi_file_is_own(*fd) ? EPERM : ftruncate(*fd, 0) != 0 ? errno
                                                                          : 0;
  if (error != 0) {
    (void)close(*fd);
  }
  return error;
}

int _mi_prim_file_create(const char* path, bool careful, intptr_t* file) {
  const int saved_errno = errno;
  const int cancel = mi_file_begin();
  int fd;
  const int error = mi_file_open(path, careful, &fd);
  *file = fd;
  mi_file_end(cancel);
  errno = saved_errno;
  return error;
}

int _mi_prim_file_write(intptr_t file, const void* bytes, size_t size) {
  const int saved_errno = errno;
  const int cancel = mi_file_begin();
  int error = 0;
  const char* at = bytes;
  while (size > 0 && error == 0) {
    const ssize_t n = write((int)file, at, size);
    if (n < 0) {
      error = errno == EINTR ? 0 : errno;
    } else {
      at += n;
      size -= (size_t)n;
    }
  }
  mi_file_end(cancel);
  errno = saved_errno;
  return error;
}

int _mi_prim_file_close(intptr_t file) {
  const int saved_errno = errno;
  const int cancel = mi_file_begin();
  const int error = close((int)file) != 0 ? errno : 0;
  mi_file_end(cancel);
  errno = saved_errno;
  return error;
}

uintptr_t _mi_prim_process_id(void) { return (uintptr_t)getpid(); }
