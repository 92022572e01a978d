// Machines from files.
#include <sim/config.h>
