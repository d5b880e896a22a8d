// Owns: the formats of a dump.
// May include: base, sys, profile.
// Called by: profile, api.
// Invariants: no lock is held while the program's function is called; what is written is the snapshot's, whatever happens meanwhile.
#pragma once

#include "src/profile/profile.h"

// What the text tells of the heaps.
typedef struct mi_profile_figures_s {
  size_t committed;
  size_t reserved;
  size_t malloc_requested;
  size_t pages;
  size_t pages_abandoned;
  size_t heaps;
  size_t theaps;
  size_t purged;
  bool detailed;
} mi_profile_figures_t;

enum { MI_PROFILE_BUFFER_SIZE = 4096 };

// Collects what is written into pieces.
typedef struct mi_profile_writer_s {
  mi_prof_write_fun* write;
  void* arg;
  size_t used;
  char buffer[MI_PROFILE_BUFFER_SIZE];
} mi_profile_writer_t;

void _mi_profile_writer_begin(mi_profile_writer_t* writer, mi_prof_write_fun* write, void* arg);
void _mi_profile_put(mi_profile_writer_t* writer, const void* bytes, size_t size);
void _mi_profile_writer_end(mi_profile_writer_t* writer);

// Write a snapshot. False: the system does not list the modules, or has no memory for what it takes; a part may be written.
bool _mi_profile_write_text(const mi_prof_snapshot_t* snapshot, const mi_profile_figures_t* figures, mi_prof_write_fun* write, void* arg);
bool _mi_profile_write_proto(const mi_prof_snapshot_t* snapshot, mi_prof_write_fun* write, void* arg);

// How many objects, and bytes, there are likely to be where so many were sampled; cut to a whole number.
void _mi_profile_scale(size_t objects, size_t bytes, size_t rate, uint64_t* likely_objects, uint64_t* likely_bytes);

// The same to a file; see _mi_prim_file_create. `figures`: of the text; NULL: proto.
bool _mi_profile_write_file(const mi_prof_snapshot_t* snapshot, const mi_profile_figures_t* figures, const char* path, bool careful);
