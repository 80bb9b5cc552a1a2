"""Numbers that decide a verdict, each with its reason; `tolerances.toml` has the limits of routes.

Limits of the filters and noise floors of logs are in `analytic/logs`. `python -m docs.limits` writes these numbers into
`docs/reference/limits.md`.
"""

INTERNAL_LOAD = 1.0
"""Default largest internal load of redundant actuators, over the largest peak of the actuators that share it [-].
The division of a load is a choice of the controller, but a larger internal load is more than the motion requires."""
LEAST_PEAK = 1e-3
"""Smallest effort that an accuracy multiplies, over the scale of the actuator [-].
An effort that is zero throughout would allow no error; a limit over the scale alone would let a counterbalanced beam
agree with zero."""
FLOORS = 2.0
"""Noise floors by which an error must exceed its limit to disagree [-].
An error agrees if it is within its limit together with one floor; in between the comparison is undecided."""
RESOLVED = 3.0
"""Smallest ratio of error to resolution of the route for a verdict on the engine [-].
The resolution is the largest of a few measured changes, not a bound."""
FILE_RESOLVES = (1e-4, 0.1)
"""Largest part of an effort that the digits of a file leave open in a judged comparison, over its scale and over the
accuracy of the user [-].
Beyond, two tools that are both right differ by more than anybody asks for."""
MARGINS = (50.0, 10_000.0)
"""Least and largest ratio of tolerance to noise without an extra reason [-].
Below, another machine or compiler may fail; above, a fault of that size is not detected."""
UNFORCED = 1e-6
"""Largest error of logged accelerations of unactuated dofs, relative to the largest acceleration [-].
Their accelerations follow from the dynamics, so a larger error is another motion, with other efforts."""
ROUND_OFF = 1e-12
"""Singular values below this fraction of the largest are round-off [-].
Numbers of a model have 16 digits, of which a decomposition loses a few."""
PEAK_OF_ROUND_OFF = 1e-11
"""Largest peak of an actuator that is round-off only, over the largest peak of the case [-].
Without it the noise of a route would be divided by an effort that is zero in exact arithmetic."""

UNUSABLE = 1.0
"""Error of a source that is not judged, over the required effort, above which its figures are unusable [-].
Such a run chatters, has not settled, or has dry friction above the peak, which excludes it."""
SETTLED = 0.1
"""The initial transient ends when the change it causes is below this part of the remaining error [-].
The transient then changes the judged error by about a tenth at most."""
SETTLED_RANGE = (2 * SETTLED, SETTLED / 2)
"""The same part for the shortest and for the longest transient [-].
A factor of two to both sides shows an error that depends on the choice of the window."""
DEPENDS_ON_BANDWIDTH = 1.5
"""Ratio of the errors at the largest and the smallest bandwidth above which they are named [-]."""
SEPARABLE = 1.5
"""Ratio of the largest errors after the shortest and the longest transient above which they are not separable [-].
The range of both errors then counts as noise floor."""
RUNNING_MEDIAN = 7
"""Samples of a running median of the change by the transient [-].
It leaves out up to three consecutive steps in which a solver does not converge."""
SMALLEST_TRANSIENT = 1e-6
"""Smallest considered change by the initial transient, over the scale [-].
Below, no verdict depends on the transient."""
FEWEST_SETTLED = 6
"""Fewest samples after the initial transient [-].
The noise floors of a log need as many."""
FEWEST_ROUND_OFF = 20
"""Fewest samples for an estimate of round-off from differences of order six [-]."""
FEWEST_SCALED = 60
"""Fewest samples for the scale of the judged window [-].
The initial push may be three times all later efforts, so the scale is that of the window alone."""
SAME_READING = 1e-9
"""Readings closer to the effort are equal to the effort, over the scale [-]; larger than round-off."""

ACCURACY = 1e-3
"""Default accuracy of a log: largest residual over the largest effort that the motion requires [-]."""
UNDECLARED_HOLD = 0.9
"""Longest estimated hold over the step of the log [-].
A longer estimate is close to one step, which is tried anyway."""
CONTRADICTED_HOLD = 1.5
"""Ratio of changes of the efforts to the stated holds that contradicts the statement [-].
Milliseconds given for seconds would otherwise pass for a long hold."""
UNEXPLAINED_FORCE = 10.0
"""Smallest unexplained force at unactuated joints that prevents a verdict, over the largest limit of an effort [-].
Such a force is missing from the model: friction, a limit or a contact."""
EXPLAINING = 3.0
"""Smallest ratio of the error without and with a change that is named though it leaves more than the accuracy [-].
A change that is not the cause removes a part of many residuals, but rarely two thirds."""
LESS = 0.1
"""Least part of the error that a further change must remove [-]; less is no reason to make the advice longer."""
LESS_OF_PEAK = 1e-3
"""Least error over the largest required effort that a further change must remove [-]."""
SETTLED_LEVEL = 1.2
"""Error in an unsettled start over the largest error in the later half of a log [-].
The later half of a settled log is about as far off as all of it."""
LATEST_START = 0.4
"""Largest part of a log that a proposed start leaves out [-]; an unsettled start is short."""
DECAYED = 2.0
"""Least ratio of the errors before and in the last third of a start that is left out unasked [-].
The transient of a simulation decays; a fault in the first rows need not."""
UNDECIDED_TIMES = 2.0
"""Ratio of two residuals below which two effort times are not decided [-]; of right logs it is 1.01 to 3.5."""
FOLLOWS = 0.05
"""Largest distance of a column from a multiple of the position or velocity that it follows, over its range [-].
A servo that lags more does not follow its target."""
MOST_CPU = 8.0
"""CPU time of the search for causes of a log [s].
The search follows the verdict, which does not depend on it."""
NEAR_GAIN = 0.05
"""Largest distance of a gain from a known gain [-]; the known gains are farther apart."""
DISTINCT_READING = 3.0
"""Smallest ratio of the effect of another reading to the noise floor, for a distinction from the effort [-]."""
FITS = 0.05
"""Largest error of a convention of wrenches that fits a log, over the largest wrench [-].
Other conventions are wrong by about the wrench itself."""
ALIKE = 10.0
"""Smallest ratio of the errors of two conventions that a log tells apart [-]."""
NEAREST_READING = 0.5
"""A column is a reading if it is closer than this part of its distance to every other reading [-]."""
