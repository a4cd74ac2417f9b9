"""All capacity strategies, for code that must not load the API's models."""

from __future__ import annotations

from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.capacity.blue_green import BlueGreen
from rollout_lws.capacity.extra_workload import ExtraWorkload
from rollout_lws.capacity.in_place import InPlace
from rollout_lws.capacity.pair import Pair, ScaledPair
from rollout_lws.capacity.shift import Shift, ShiftBack
from rollout_lws.capacity.shifted_pair import ShiftedPair
from rollout_lws.capacity.surge import Surge
from rollout_lws.capacity.swap import Swap, SwapBack

EXTRA_WORKLOAD: CapacityStrategy = ExtraWorkload()
BLUE_GREEN: CapacityStrategy = BlueGreen()
SWAP: CapacityStrategy = Swap()
#: The release after one that swapped.
SWAP_BACK: CapacityStrategy = SwapBack()
SHIFT: CapacityStrategy = Shift()
#: The release after one that shifted.
SHIFT_BACK: CapacityStrategy = ShiftBack()
IN_PLACE: CapacityStrategy = InPlace()
SURGE: CapacityStrategy = Surge()
PAIR: CapacityStrategy = Pair()
#: A pair whose workloads a release scales.
SCALED_PAIR: CapacityStrategy = ScaledPair()
#: Such a pair whose sides have hardly more groups together than one of them at rest.
SHIFTED_PAIR: CapacityStrategy = ShiftedPair()

#: In the order of documentation and help texts.
STRATEGIES = (EXTRA_WORKLOAD, BLUE_GREEN, SWAP, SHIFT, IN_PLACE, SURGE, PAIR)
#: Those of a Rollout that names one workload.
OF_ONE = tuple(each for each in STRATEGIES if not each.paired)
BY_NAME = {each.name: each for each in STRATEGIES}
