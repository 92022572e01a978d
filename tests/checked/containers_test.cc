// The test of every container under every mechanism, with the checks of STELE_CHECKED.
#include <tests/conformance/containers_test.cc>
