// Work lists that are derived on the device: tiles of groups whose sizes the host does not know.
#pragma once

#include "kernels/cuda/common.cuh"

namespace briar::sm90 {

struct GroupTile {
  int group = -1;  // -1: there are fewer tiles
  int64_t tile = 0;
};

// Tile `index` of all groups' tiles in order, where group g has tiles_of(g). Called by whole warps.
template <class TilesOf>
__device__ GroupTile find_tile(int num_groups, int64_t index, const TilesOf& tiles_of) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  int64_t before = 0;  // tiles of the groups before `base`
  for (int base = 0; base < num_groups; base += kWarp) {
    const int64_t tiles = base + lane < num_groups ? tiles_of(base + lane) : 0;
    int64_t through = tiles;  // of the groups of this round, up to this lane's
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const int64_t other = __shfl_up_sync(kAllLanes, through, offset);
      if (lane >= offset) through += other;
    }
    const unsigned ballot = __ballot_sync(kAllLanes, before + through > index);
    if (ballot != 0) {
      const int winner = __ffs(static_cast<int>(ballot)) - 1;
      const int64_t first = __shfl_sync(kAllLanes, before + through - tiles, winner);
      return {base + winner, index - first};
    }
    before += __shfl_sync(kAllLanes, through, kWarp - 1);
  }
  return {};
}

}  // namespace briar::sm90
