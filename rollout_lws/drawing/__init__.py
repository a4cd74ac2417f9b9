"""Pictures of releases: a ``Course`` is what they show, and ``picture`` makes SVG of it. Pure: values in, text out.

``plan --svg`` draws forecasts. A course may also be of a release that is under way: what was observed up to ``now``,
and what is forecast after it.
"""
