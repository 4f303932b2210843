// What the tests of Harmony's parser share, by short names.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "formats/test_support.h"

namespace briar {

using format_test::Answer;
using format_test::harmony;
using format_test::parse;
using format_test::structured;

}  // namespace briar
