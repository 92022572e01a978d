// The test of every container under every mechanism, with the checks of STELE_DEBUG.
#include <tests/conformance/containers_test.cc>
