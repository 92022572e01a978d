// STELE_FLATTEN before a function: every call in it is inlined (flattened). Not under
// sanitizers: with their checks a flattened function takes minutes to compile.
#pragma once

#ifdef STELE_SANITIZED
#define STELE_FLATTEN
#else
#define STELE_FLATTEN [[gnu::flatten]]
#endif
