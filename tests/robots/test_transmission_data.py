"""Transmission files: closed at zero, complete in their origin, and with the reflected inertia of their sources.

Reads the files and solves the closures in 30 digits with mpmath, without code of the package.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from mpmath import cos, findroot, matrix, mp, mpf, norm, sin

FOLDER = Path(__file__).parents[2] / "robots" / "transmissions"
FILES = sorted(FOLDER.glob("*.toml"))
CERTAINTIES = {"manufacturer's model", "manufacturer's code", "community reconstruction"}
STEP = mpf("1e-8")
"""Step of the central differences [rad or m]: their error is of the order of its square."""

BENT = mpf("0.15")
"""Position of all joints in the second pose [rad]."""

FIGURES = {
    # Inverse kinematics of the source, ported by hand, and its central differences.
    "agibot_x1_ankle_left": (((6.1298042, -0.0027509), (-0.0027509, 2.2959474)), (-0.096208212, 0.462253714)),
    "atom01_ankle_left": (((2.0, 0.0), (0.0, 8.9676125)), (0.480387341, -0.163902956)),
    # Source's closed URDF in MuJoCo 4.0, closed by Gauss-Newton, and the nullspace of its constraint Jacobian.
    "battobot_ankle_left": (((5.4496589, -0.1029277), (-0.1029277, 2.5912568)), (0.254449395, 0.708770686)),
    "battobot_knee_left": (((2.5745193,),), (0.313187167,)),
    # Source's closed MJCF in MuJoCo 4.0, closed by Gauss-Newton, and the nullspace of its constraint Jacobian.
    "booster_k1_ankle_left": (((1.4420091, 0.1254265), (0.1254265, 0.5232221)), (-0.224107888, -0.043167126)),
    "booster_t1_ankle_left": (((2.8883599, 0.0839097), (0.0839097, 0.7704842)), (-0.291629674, -0.076090625)),
    "cassie_foot_left": (((1.0164818,),), (0.151267911,)),
    "cassie_tarsus_left": (((1.0391964,),), (-0.152461042,)),
    "digit_tarsus_left": (((0.9999488,),), (-0.150002197,)),
    "digit_toe_left": (((1.8309236, 0.0035028), (0.0035028, 0.1823678)), (-0.096406340, 0.191568539)),
    "kangaroo_leg_length_left": (((0.3389139,),), (0.081511403,)),
    "kuavo_4_pro_ankle_left": (((3.7608957, -0.0031994), (-0.0031994, 2.0056893)), (-0.049909130, 0.381977566)),
    "kuavo_5_ankle_left": (((2.3809269, -0.0040978), (-0.0040978, 1.9045599)), (-0.012596213, 0.315908468)),
    "kuavo_5_knee_left": (((2.2763166,),), (0.222104958,)),
    "kuavo_7_ankle_left": (((2.4267695, 0.0111853), (0.0111853, 1.1668009)), (-0.049987477, 0.295060617)),
    "kuavo_7_elbow_left": (((0.00036251819,),), (-0.002759686,)),
    "kuavo_7_waist": (((6.4839811, 0.0), (0.0, 0.5261847)), (0.335631584, 0.187843031)),
    "limx_hu_d03_ankle_left": (((2.2914641, 0.0000852), (0.0000852, 2.0378552)), (0.317803720, -0.007730265)),
    "limx_hu_d03_waist": (((2.0000626, 0.0), (0.0, 1.7633938)), (-0.014986683, -0.283791389)),
    "limx_hu_d04_ankle_left": (((2.2914619, 0.0000856), (0.0000856, 2.0378551)), (0.317803067, -0.007730165)),
    "limx_hu_d04_waist": (((2.0000626, 0.0), (0.0, 1.7633938)), (-0.014986683, -0.283791389)),
    "robonex_ankle_left": (((1.936512, 0.0), (0.0, 2.0)), (0.318058214, -0.014927455)),
    "robonex_knee_left": (((2.0193159,),), (0.226395853,)),
    "tienkung_ankle_left": (((1.9999854, -0.0000123), (-0.0000123, 1.2006237)), (0.271944377, 0.025430453)),
    "toddlerbot_knee_left": (((1.0,),), (0.150000000,)),
    "toddlerbot_neck": (((1.0033047,),), (0.150312309,)),
    "unitree_g1_ankle_left": (((3.8213852, 0.0278444), (0.0278444, 1.6435141)), (-0.072363296, 0.374608650)),
}
"""By name of the file: the reflected inertia at the zero pose if every motor has unit inertia, and the positions of the
motors [rad or m] with all joints at `BENT`. The inertia is Tᵀ T [-, or m² if the motor is a slide], where the rates of
the motors are T times the rates of the joints."""

INERTIA = {
    # Mass matrix of the source's closed MJCF in MuJoCo 4.0, on the nullspace of its constraint Jacobian.
    "digit_toe_left": ((0.06930808401, 0.00011674538), (0.00011674538, 0.00791540695)),
    "limx_hu_d03_ankle_left": ((0.22497799983, 0.00004808709), (0.00004808709, 0.19635108797)),
    "limx_hu_d04_ankle_left": ((0.42962874208, 0.00005401020), (0.00005401020, 0.37880423152)),
    "robonex_ankle_left": ((0.01699508954, 0.00002682772), (0.00002682772, 0.01545488173)),
}
"""Inertia at the joints in the zero pose, base at rest, rods free to spin, by name of files with all masses [kg m²]."""


@pytest.fixture(autouse=True)
def thirty_digits() -> Any:
    with mp.workdps(30):
        yield


def read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def vector(numbers: list[float]) -> Any:
    return matrix([mpf(repr(x)) for x in numbers])


def cross(a: Any, b: Any) -> Any:
    return matrix([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def moved(part: dict[str, Any], x: Any, point: Any) -> Any:
    """A point after a displacement x of a hinge (Rodrigues' formula) or slide [m], shape (3,)."""
    axis = vector(part["axis"])
    axis /= norm(axis)
    if part["kind"] == "slide":
        return point + axis * x
    arm = point - vector(part["anchor"])
    along = axis * sum(axis[i] * arm[i] for i in range(3))
    return vector(part["anchor"]) + along + (arm - along) * cos(x) + cross(axis, arm) * sin(x)


def rod(leg: dict[str, Any]) -> Any:
    """Length of the rod [m]."""
    return mpf(repr(leg["rod_length"])) if "rod_length" in leg else norm(vector(leg["end"]) - vector(leg["pin"]))


def end_of_rod(data: dict[str, Any], leg: dict[str, Any], q: list[Any]) -> Any:
    """End of the rod on the link that it moves [m], shape (3,)."""
    names = [joint["name"] for joint in data["joint"]]
    point = vector(leg["end"])
    for i in reversed(range(names.index(leg.get("on", names[-1])) + 1)):
        point = moved(data["joint"][i], q[i], point)
    return point


def motor_angle(data: dict[str, Any], leg: dict[str, Any], q: list[Any], guess: Any = 0) -> Any:
    """Position of the motor that closes the leg, near a guess [rad or m]."""
    end, length = end_of_rod(data, leg, q), rod(leg)

    def gap(x: Any) -> Any:
        return norm(end - moved(leg, x, vector(leg["pin"]))) - length

    return findroot(gap, (guess, guess + mpf("1e-4")), tol=mpf("1e-50"))


def zero_pose(data: dict[str, Any]) -> list[Any]:
    """Positions of the motors at the zero pose, on the branch nearest to motor zero [rad or m], shape (motors,)."""
    return [motor_angle(data, leg, [mpf(0)] * len(data["joint"])) for leg in data["leg"]]


def sine_of_crank_and_rod(data: dict[str, Any], leg: dict[str, Any], angle: Any) -> Any:
    """Sine of the angle from crank to rod about the motor's axis at the zero pose, times the rod's inclination [-]."""
    axis = vector(leg["axis"]) / norm(vector(leg["axis"]))
    pin = moved(leg, angle, vector(leg["pin"]))
    turned = cross(pin - vector(leg["anchor"]), vector(leg["end"]) - pin)
    crank = norm(cross(axis, pin - vector(leg["anchor"])))
    return sum(axis[i] * turned[i] for i in range(3)) / crank / rod(leg)


def transmission(data: dict[str, Any]) -> Any:
    """Rates of the motors per rate of the joints at the zero pose [-, rad/m or m/rad], shape (motors, joints)."""
    T = matrix(len(data["leg"]), len(data["joint"]))
    for i, (leg, angle) in enumerate(zip(data["leg"], zero_pose(data), strict=True)):
        for j in range(T.cols):
            after, before = ([s * STEP if k == j else mpf(0) for k in range(T.cols)] for s in (1, -1))
            T[i, j] = (motor_angle(data, leg, after, angle) - motor_angle(data, leg, before, angle)) / (2 * STEP)
    return T


def test_every_file_has_figures() -> None:
    assert {path.stem for path in FILES} == FIGURES.keys()


def test_the_readme_has_a_row_for_every_file() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = [tuple(row.split(" | ")) for row in re.findall(r"^\| (\[.*\]\(\w+\.toml\) \| .*) \|$", text, re.MULTILINE)]
    want = []
    for path, data in ((path, read(path)) for path in FILES):
        source, file = data["source"], data["source"]["path"].split(",")[0]
        url = f"https://github.com/{source['repository']}/blob/{source['commit']}/{file}"
        origin = f"[{source['repository']}]({url})"
        want.append(
            (f"[{data['title']}]({path.name})", origin, data["certainty"], source["licence"], data["open_question"])
        )
    assert rows == want


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_states_its_origin(path: Path) -> None:
    data = read(path)
    assert data["certainty"] in CERTAINTIES
    assert data["title"]
    assert data["open_question"].endswith(".")
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", data["source"]["repository"])
    assert re.fullmatch(r"[0-9a-f]{40}", data["source"]["commit"])
    assert data["source"]["path"]
    assert data["source"]["licence"]
    assert ("usual_factor" in data) == ("usual_source" in data)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_transmission_has_as_many_legs_as_joints_and_plausible_numbers(path: Path) -> None:
    data = read(path)
    assert 1 <= len(data["joint"]) == len(data["leg"]) <= 3
    for part in (*data["joint"], *data["leg"]):
        assert abs(norm(vector(part["axis"])) - 1) < 1e-9
        low, high = part.get("range", (-1, 1))
        assert low < high
        for body in (part[key] for key in ("body", "crank", "rod") if key in part):
            xx, yy, zz = sorted(body["inertia"][:3])
            assert body["mass"] > 0
            assert 0 < xx <= yy <= zz <= (xx + yy) * (1 + 1e-3)
    for leg in data["leg"]:
        assert 0.01 < rod(leg) < 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_zero_pose_is_closed_or_the_rod_has_a_length_and_a_branch(path: Path) -> None:
    data = read(path)
    for leg, angle in zip(data["leg"], zero_pose(data), strict=True):
        assert ("rod_length" in leg) == ("elbow" in leg)
        assert "elbow" in leg or abs(angle) < 1e-20
        if leg["kind"] == "hinge":
            sine = sine_of_crank_and_rod(data, leg, angle)
            assert abs(sine) > 0.1, "the zero pose is next to a singularity"
            assert sine * leg.get("elbow", sine) > 0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_reflected_inertia_agrees_with_the_source(path: Path) -> None:
    T = transmission(read(path))
    found = (T.T * T).tolist()
    want, _ = FIGURES[path.stem]
    scale = max(row[i] for i, row in enumerate(want))
    for row, values in zip(found, want, strict=True):
        assert [float(x) for x in row] == pytest.approx(values, abs=1e-7 * scale)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_motors_agree_with_the_source_in_a_bent_pose(path: Path) -> None:
    data = read(path)
    bent = [BENT] * len(data["joint"])
    found = [motor_angle(data, leg, bent, angle) for leg, angle in zip(data["leg"], zero_pose(data), strict=True)]
    assert [float(x) for x in found] == pytest.approx(FIGURES[path.stem][1], abs=1e-9)


def turning(part: dict[str, Any], rates: Any, joint: int, point: Any) -> tuple[Any, Any]:
    """Angular velocity [rad/s] and velocity of a point [m/s] of a hinge's part, by the rate of one joint."""
    omega = vector(part["axis"]) * rates[joint]
    return omega, cross(omega, point - vector(part["anchor"]))


Twists = list[tuple[dict[str, Any], Any, Any]]
"""Bodies with angular velocity [rad/s] and velocity of the mass centre [m/s]."""


def twists_of_joint(data: dict[str, Any], T: Any, joint: int) -> Twists:
    """Motion at unit rate of one joint, without spin of the rods."""
    unit = [mpf(int(k == joint)) for k in range(T.cols)]
    moving = data["joint"][joint]
    found = [
        (part["body"], *turning(moving, unit, joint, vector(part["body"]["center"]))) for part in data["joint"][joint:]
    ]
    for i, leg in enumerate(data["leg"]):
        pin, end = vector(leg["pin"]), vector(leg["end"])
        found.append((leg["crank"], *turning(leg, T[i, :], joint, vector(leg["crank"]["center"]))))
        _, at_pin = turning(leg, T[i, :], joint, pin)
        _, at_end = turning(moving, unit, joint, end)
        omega = cross(end - pin, at_end - at_pin) / norm(end - pin) ** 2
        found.append((leg["rod"], omega, at_pin + cross(omega, vector(leg["rod"]["center"]) - pin)))
    return found


def twists_of_spin(leg: dict[str, Any]) -> Twists:
    """Motion of a rod that spins about its ends."""
    omega = vector(leg["end"]) - vector(leg["pin"])
    return [(leg["rod"], omega, cross(omega, vector(leg["rod"]["center"]) - vector(leg["pin"])))]


def tensor(body: dict[str, Any]) -> Any:
    xx, yy, zz, xy, xz, yz = (mpf(repr(x)) for x in body["inertia"])
    return matrix([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def product(some: Twists, others: Twists) -> Any:
    """Entry of the mass matrix for two motions."""
    total = mpf(0)
    for body, omega, velocity in some:
        for other, turn, speed in others:
            if body is other:
                total += (omega.T * tensor(body) * turn)[0] + mpf(repr(body["mass"])) * (velocity.T * speed)[0]
    return total


@pytest.mark.parametrize("name", INERTIA)
def test_masses_and_armature_agree_with_the_source(name: str) -> None:
    data = read(FOLDER / f"{name}.toml")
    T = transmission(data)
    n = T.cols
    motions = [*(twists_of_joint(data, T, j) for j in range(n)), *(twists_of_spin(leg) for leg in data["leg"])]
    mass = matrix([[product(some, others) for others in motions] for some in motions])
    for i, leg in enumerate(data["leg"]):
        mass[:n, :n] += mpf(repr(leg["armature"])) * T[i, :].T * T[i, :]
    free = mass[:n, :n] - mass[:n, n:] * mass[n:, n:] ** -1 * mass[n:, :n]
    for row, values in zip(free.tolist(), INERTIA[name], strict=True):
        assert [float(x) for x in row] == pytest.approx(values, abs=1e-10)
