"""The plainest event loop there is, for the twins that tests hold the engine against."""

from __future__ import annotations

import heapq
import itertools
import math


class Agenda:
    """What is still to happen: the earliest first, and at one instant what was planned first."""

    def __init__(self):
        self.agenda, self.ticket = [], itertools.count()

    def at(self, time, action, *what):
        heapq.heappush(self.agenda, (time, next(self.ticket), action, what))

    def run_until(self, until=math.inf):
        while self.agenda and self.agenda[0][0] <= until:
            time, _, action, what = heapq.heappop(self.agenda)
            action(time, *what)
