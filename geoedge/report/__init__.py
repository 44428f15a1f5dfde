"""What runs, scenarios, cities and theory say, in words for a terminal and in one page for a browser.

`geoedge.report.page.report_page` tells about one run, or lays several side by side, as a
`geoedge.report.page.ReportPage`, a single file that opens without network: verdict, answers, distributions, the controller's ledger, the map, scenario and
provenance. ``geoedge report`` is the same on the command line. The modules beside it say what the verbs of
the command line print.

>>> from geoedge.report.page import report_page
>>> report_page("runs/no-such-run")
Traceback (most recent call last):
    ...
geoedge.errors.OutputError: ...

Numbers carry their units, and simulated ones their 95 % intervals. A report says what a run kept and what it
leaves out: overload, instability, extrapolation. It runs nothing.
"""
