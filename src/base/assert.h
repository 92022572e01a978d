// Assertions: what the code around them relies on, in a form that a build can
// execute. docs/assertions.md says which of STELE_ASSERT, base::check and
// STELE_DEBUG is for what.
//
// STELE_ASSERTIONS is set for a whole program, never for a file: 0 (the
// default) in what is installed and measured, 2 in tests, the explorer and the
// schedules. An assertion states what Stele's own code guarantees. What comes
// from media, a file, another process or a user is never asserted: it is
// validated, and refused by a stele::error. A condition has no side effects.
#pragma once

#include <base/check.h>

#ifndef STELE_ASSERTIONS
#define STELE_ASSERTIONS 0
#endif

// In every build: for conditions that cost nothing measurable where they stand,
// such as those of opening, growing and closing.
#define STELE_ASSERT_ALWAYS(...)  \
  (static_cast<bool>(__VA_ARGS__) \
       ? static_cast<void>(0)     \
       : ::stele::base::check_failed("assertion failed: " #__VA_ARGS__, __FILE__, __LINE__))

// Compiled and not executed, so that it cannot become wrong unnoticed.
#define STELE_ASSERT_UNEVALUATED(...) static_cast<void>(sizeof(static_cast<bool>(__VA_ARGS__)))

// In checked builds: for conditions of a few loads and comparisons.
#if STELE_ASSERTIONS >= 1
#define STELE_ASSERT(...) STELE_ASSERT_ALWAYS(__VA_ARGS__)
#else
#define STELE_ASSERT(...) STELE_ASSERT_UNEVALUATED(__VA_ARGS__)
#endif

// In checked builds at level 2: for conditions that walk a whole structure.
#if STELE_ASSERTIONS >= 2
#define STELE_ASSERT_WHOLE(...) STELE_ASSERT_ALWAYS(__VA_ARGS__)
#else
#define STELE_ASSERT_WHOLE(...) STELE_ASSERT_UNEVALUATED(__VA_ARGS__)
#endif
