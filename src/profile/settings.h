// Owns: what a profile is started with: the environment, the options, and what the program says.
// May include: base, prim, sys, profile, the public header.
// Called by: heap, api.
// Invariants: the environment is read once, when the process starts, and not at all by a process with more rights than its
// starter's; a file that it names is opened only if writing to it can harm nobody but the user.
#pragma once

#include "src/profile/encode.h"

// Reads the environment, and starts a profile if it, or an option, says so.
void _mi_profile_load(void);

// What to profile with when the program names an interval (0: none), or with its configuration (NULL: none). False: that is not
// what it should be.
void _mi_profile_settings(size_t rate, mi_profile_settings_t* settings);
bool _mi_profile_settings_of(const mi_prof_config_t* config, mi_profile_settings_t* settings);

// Makes what the program's configuration says of later profiles, and of the end of the process, so.
void _mi_profile_settings_keep(const mi_prof_config_t* config, const mi_profile_settings_t* settings);

// The end of the process: whether the profile that runs is to be written to a file, and as text; then writes it.
bool _mi_profile_wants_dump(bool* is_text);
void _mi_profile_dump_at_exit(const mi_profile_figures_t* figures);
