// wrong.h: what the launch at hand did wrong.
#pragma once
#include <string>

namespace emulator {
extern std::string wrong;
}
