// STELE_IN_ONE_PIECE before a function: every call in it is inlined (flattened). Not under
// sanitizers: with their checks a flattened function takes minutes to compile.
#pragma once

#ifdef STELE_SANITIZED
#define STELE_IN_ONE_PIECE
#else
#define STELE_IN_ONE_PIECE [[gnu::flatten]]
#endif
