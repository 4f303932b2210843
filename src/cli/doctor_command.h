// `briar doctor`: what this machine has and what Briar will use of it.
#pragma once

namespace briar {

int run_doctor(bool json);

}  // namespace briar
