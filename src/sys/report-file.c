// Owns: what is known of the file.
// May include: base, prim, sys/log.h, sys/sealed.h.
// Called by: through report-file.h.
// Invariants: what is known stands with the configuration and does not change once the process has started.
#include "src/sys/report-file.h"

#include <errno.h>

#include "src/prim/prim.h"
#include "src/sys/log.h"
#include "src/sys/sealed.h"

enum { MI_REPORT_FILE_PATH = 4096 };

static const char* mi_report_file_reason(int err) {
  switch (err) {
    case EACCES:
    case EPERM:
      return "no permission";
    case EISDIR:
      return "it is a directory";
    case ELOOP:
      return "it is a symbolic link";
    case ENAMETOOLONG:
      return "the name is too long";
    case ENOENT:
    case ENOTDIR:
      return "there is no such directory";
    case EROFS:
      return "the file system is read-only";
    default:
      return "the system refused";
  }
}

mi_cold void _mi_report_file_open(void) {
  char path[MI_REPORT_FILE_PATH];
  const int found = _mi_prim_getenv("MIMALLOC_GUARDED_LOG", path, sizeof(path));
  if (_mi_fixed.has_report_file || found <= 0 || path[0] == 0) {
    return;
  }
  const int err = found == 2 ? ENAMETOOLONG : _mi_prim_log_open(path, &_mi_fixed.report_file);
  if (err == 0) {
    _mi_fixed.has_report_file = true;
    return;
  }
  _mi_log_config_warning("the file of MIMALLOC_GUARDED_LOG cannot be opened to append to (%s, error %d), reports go to stderr\n",
                         mi_report_file_reason(err), err);
}

bool _mi_report_file_is_open(void) { return _mi_fixed.has_report_file; }

bool _mi_report_file_write(const char* text, size_t len) {
  return _mi_fixed.has_report_file && _mi_prim_log_write(&_mi_fixed.report_file, text, len);
}
