"""Measure other programs beside loopcheck: `python -m docs.benchmark.rivals PYTHON`.

PYTHON has CasADi and its copy of Eigen (`pip install casadi`, in an environment of its own); g++ compiles the code of
CasADi, and a loop over Pinocchio. All programs run in turns in a single process. Writes `docs/benchmark/rivals.csv`.
"""

import ctypes
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pinocchio

from docs.benchmark.files import ROBOTS, SAMPLES, error, oracle, problem
from docs.benchmark.pinocchio_loop import Loop, simple_loop
from docs.benchmark.timing import FEW, GAP, alternated, repeated
from loopcheck.analytic.batch import inverse_dynamics
from loopcheck.analytic.batch.compiled import lanes_of_a_vector, load_map, map_job
from loopcheck.analytic.batch.inverse import _equations
from loopcheck.analytic.batch.tape import Tape
from loopcheck.analytic.batch.trace import Trace, trace
from loopcheck.analytic.batch.tracking import WEIGHTS
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.motion import Drive
from loopcheck.robots.robot import Case

TABLE = Path(__file__).parent / "rivals.csv"
SPAN = 100
"""Consecutive samples of a lane."""
FLAGS = {
    "g++, flags of loopcheck": ("-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"),
    "g++, -ffast-math": ("-ffast-math",),
}
"""What a compiler may do with numbers; loopcheck's code joins a product and a sum, and never changes the order."""
GENERATE = """
import sys
import casadi as ca
import numpy as np

tape, folder = np.load(sys.argv[1]), sys.argv[2]
rules = [
    None, lambda x, y, k: x + y, lambda x, y, k: x - y, lambda x, y, k: x * y, lambda x, y, k: x / y,
    lambda x, y, k: x + k, lambda x, y, k: k * x, lambda x, y, k: k - x, lambda x, y, k: k / x,
    lambda x, y, k: ca.sqrt(x), lambda x, y, k: ca.sin(x), lambda x, y, k: ca.cos(x), lambda x, y, k: ca.fabs(x),
    lambda x, y, k: ca.fmax(x, y), lambda x, y, k: ca.fmin(x, y), lambda x, y, k: ca.SX(k),
]
inputs = ca.SX.sym("x", int(tape["inputs"]))
values = dict(enumerate(ca.vertsplit(inputs)))
for (op, target, x, y), k in zip(tape["code"].tolist(), tape["constants"].tolist()):
    values[target] = rules[op](values.get(x), values.get(y), k)
efforts = ca.Function("efforts", [inputs], [ca.vertcat(*(values[place] for place in tape["outputs"].tolist()))])
efforts.generate("efforts.c", {"casadi_real": "V", "with_header": False})
print(ca.__version__)
"""
"""Program that generates C from a tape; rules in the order of `expressions.Op`."""
VECTORS = """
#include <cmath>
struct V {
    typedef double T __attribute__((vector_size(8 * LANES)));
    T x;
    V() {}
    V(double k) { for (int i = 0; i < LANES; i++) x[i] = k; }
    V(T y) : x(y) {}
};
static inline V operator+(V a, V b) { return a.x + b.x; }
static inline V operator-(V a, V b) { return a.x - b.x; }
static inline V operator*(V a, V b) { return a.x * b.x; }
static inline V operator/(V a, V b) { return a.x / b.x; }
static inline V operator-(V a) { return -a.x; }
static inline V &operator+=(V &a, V b) { a.x += b.x; return a; }
static inline V &operator-=(V &a, V b) { a.x -= b.x; return a; }
static inline V &operator*=(V &a, V b) { a.x *= b.x; return a; }
#if LANES == 8
extern "C" V::T _ZGVeN8v_sin(V::T), _ZGVeN8v_cos(V::T);  // glibc's, which g++ itself calls with -ffast-math alone
static inline V sin(V a) { return _ZGVeN8v_sin(a.x); }
static inline V cos(V a) { return _ZGVeN8v_cos(a.x); }
#else
static inline V sin(V a) { V y; for (int i = 0; i < LANES; i++) y.x[i] = std::sin(a.x[i]); return y; }
static inline V cos(V a) { V y; for (int i = 0; i < LANES; i++) y.x[i] = std::cos(a.x[i]); return y; }
#endif
static inline V fmax(V a, V b) { return a.x > b.x ? a.x : b.x; }
static inline V fmin(V a, V b) { return a.x < b.x ? a.x : b.x; }
static inline V sqrt(V a) { V y; for (int i = 0; i < LANES; i++) y.x[i] = std::sqrt(a.x[i]); return y; }
static inline V fabs(V a) { V y; for (int i = 0; i < LANES; i++) y.x[i] = std::fabs(a.x[i]); return y; }
static inline V square(V a) { return a.x * a.x; }
"""
"""Numbers of several samples."""
PATH = """
#include "generated.h"

extern "C" void run(const double *weights, const double *drive, const double *starts, double *effort, long groups)
{
    for (long g = 0; g < groups; g++) {
        V x[NQ + 3 * ND], y[NQ + NA], past[4][NQ];
        for (int c = 0; c < NQ; c++)
            for (int i = 0; i < LANES; i++)
                for (int k = 0; k < 4; k++)
                    past[k][c].x[i] = starts[(g * LANES + i) * NQ + c];
        for (long s = 0; s < SPAN; s++) {
            const double *w = weights + 4 * (s < 4 ? s : 4);
            for (int c = 0; c < NQ; c++)
                x[c] = w[0] * past[0][c] + w[1] * past[1][c] + w[2] * past[2][c] + w[3] * past[3][c];
            for (int c = 0; c < 3 * ND; c++)
                for (int i = 0; i < LANES; i++)
                    x[NQ + c].x[i] = drive[((g * LANES + i) * SPAN + s) * 3 * ND + c];
            for (int step = 0; step < 12; step++) {
                const V *given[] = {x};
                V *found[] = {y};
                efforts(given, found, 0, 0, 0);
                double size = 0;
                for (int c = 0; c < NQ; c++) {
                    V gap = fabs(y[c] - x[c]);
                    for (int i = 0; i < LANES; i++)
                        size = gap.x[i] > size ? gap.x[i] : size;
                    x[c] = y[c];
                }
                if (size < 1e-13)
                    break;
            }
            for (int c = 0; c < NQ; c++)
                past[3][c] = past[2][c], past[2][c] = past[1][c], past[1][c] = past[0][c], past[0][c] = y[c];
            for (int c = 0; c < NA; c++)
                for (int i = 0; i < LANES; i++)
                    effort[((g * LANES + i) * SPAN + s) * NA + c] = y[NQ + c].x[i];
        }
    }
}
"""
"""Path tracking around the generated code: extrapolation and Newton steps, without the checks of loopcheck."""
MAP = """
#include "generated.h"

extern "C" void run(const double *inputs, double *outputs)
{
    for (long g = 0; g < SAMPLES; g += LANES) {
        V x[NX], y[NY];
        for (int c = 0; c < NX; c++)
            __builtin_memcpy(&x[c], inputs + c * GAP + g, sizeof(V));
        const V *given[] = {x};
        V *found[] = {y};
        efforts(given, found, 0, 0, 0);
        for (int c = 0; c < NY; c++)
            __builtin_memcpy(outputs + c * GAP + g, &y[c], sizeof(V));
    }
}
"""
"""The generated code alone, on inputs and outputs whose samples lie side by side in columns."""
BY_HAND = """
static const double A[3][2] = {{0, 0}, {1, 0}, {0.5, 0.8660254037844386}};
static const double E[3][2] = {{1, 0}, {-0.5, 0.8660254037844386}, {-0.5, -0.8660254037844386}};
static const double B[3][2] = {{-0.15, 0}, {0.075, -0.12990381056766578}, {0.075, 0.12990381056766578}};
static const double L = 0.3, SLIDER = 0.1372, LINK = 0.5201, PLATFORM = 1.4195, I_LINK = 6.06e-4, I_PLATFORM = 5.076e-3;
struct Solver {  // the inverse of a matrix of three rows, by cross products of its rows
    V x[3], y[3], z[3];
    Solver(const V *u, const V *v, const V *w)
    {
        for (int i = 0; i < 3; i++) {
            const int j = (i + 1) % 3, k = (i + 2) % 3;
            x[i] = v[j] * w[k] - w[j] * v[k], y[i] = w[j] * u[k] - u[j] * w[k], z[i] = u[j] * v[k] - v[j] * u[k];
        }
        const V over = 1.0 / (u[0] * x[0] + v[0] * y[0] + w[0] * z[0]);
        for (int i = 0; i < 3; i++)
            x[i] = x[i] * over, y[i] = y[i] * over, z[i] = z[i] * over;
    }
    void solve(const V *b, V *a) const
    {
        a[0] = x[0] * b[0] + x[1] * b[1] + x[2] * b[2];
        a[1] = y[0] * b[0] + y[1] * b[1] + y[2] * b[2];
        a[2] = z[0] * b[0] + z[1] * b[1] + z[2] * b[2];
    }
    void transposed(const V *b, V *a) const
    {
        for (int i = 0; i < 3; i++)
            a[i] = x[i] * b[0] + y[i] * b[1] + z[i] * b[2];
    }
};
static inline void arms(const V *pose, const V *q, V *rx, V *ry, V *dx, V *dy)
{
    const V c = cos(pose[2]), s = sin(pose[2]);
    for (int i = 0; i < 3; i++) {
        rx[i] = c * B[i][0] - s * B[i][1], ry[i] = s * B[i][0] + c * B[i][1];
        dx[i] = pose[0] + rx[i] - q[i] * E[i][0] - A[i][0], dy[i] = pose[1] + ry[i] - q[i] * E[i][1] - A[i][1];
    }
}
extern "C" void run(const double *weights, const double *gravity, const double *drive, const double *starts,
                    double *effort, long groups)
{
    const double gx = gravity[0], gy = gravity[1];
    for (long g = 0; g < groups; g++) {
        V past[4][3];
        for (int c = 0; c < 3; c++)
            for (int i = 0; i < LANES; i++)
                for (int k = 0; k < 4; k++)
                    past[k][c].x[i] = starts[(g * LANES + i) * 3 + c];
        for (long s = 0; s < SPAN; s++) {
            const double *w = weights + 4 * (s < 4 ? s : 4);
            V p[3], x[9], rx[3], ry[3], dx[3], dy[3], turn[3], b[3], step[3], rate[3], a[3], tau[3];
            for (int c = 0; c < 3; c++)
                p[c] = w[0] * past[0][c] + w[1] * past[1][c] + w[2] * past[2][c] + w[3] * past[3][c];
            for (int c = 0; c < 9; c++)
                for (int i = 0; i < LANES; i++)
                    x[c].x[i] = drive[((g * LANES + i) * SPAN + s) * 9 + c];
            const V *q = x, *qd = x + 3, *qdd = x + 6;
            for (int k = 0; k < (s < 4 ? 6 : STEPS); k++) {
                arms(p, q, rx, ry, dx, dy);
                for (int i = 0; i < 3; i++)
                    turn[i] = rx[i] * dy[i] - ry[i] * dx[i], b[i] = 0.5 * (L * L - dx[i] * dx[i] - dy[i] * dy[i]);
                Solver(dx, dy, turn).solve(b, step);
                for (int c = 0; c < 3; c++)
                    p[c] += step[c];
            }
            arms(p, q, rx, ry, dx, dy);
            for (int i = 0; i < 3; i++) {
                turn[i] = rx[i] * dy[i] - ry[i] * dx[i];
                b[i] = qd[i] * (E[i][0] * dx[i] + E[i][1] * dy[i]);
            }
            const Solver J(dx, dy, turn);
            J.solve(b, rate);
            const V w2 = rate[2] * rate[2];
            V ax[3], ay[3];
            for (int i = 0; i < 3; i++) {
                const V vx = rate[0] - rate[2] * ry[i] - qd[i] * E[i][0];
                const V vy = rate[1] + rate[2] * rx[i] - qd[i] * E[i][1];
                ax[i] = qdd[i] * E[i][0] + w2 * rx[i], ay[i] = qdd[i] * E[i][1] + w2 * ry[i];
                b[i] = ax[i] * dx[i] + ay[i] * dy[i] - vx * vx - vy * vy;
            }
            J.solve(b, a);
            // platform: m (a - g) and I alpha equal the sum of the forces at its joints; a link passes on what its own
            // inertia leaves, a part across it by moments about its slider, and a tension along it
            V f[3] = {PLATFORM * (a[0] - gx), PLATFORM * (a[1] - gy), I_PLATFORM * a[2]}, fx[3], fy[3], cx[3], cy[3];
            for (int i = 0; i < 3; i++) {
                const V bx = a[0] - a[2] * ry[i] - w2 * rx[i], by = a[1] + a[2] * rx[i] - w2 * ry[i];
                const V sx = qdd[i] * E[i][0], sy = qdd[i] * E[i][1];
                cx[i] = LINK * (0.5 * (bx + sx) - gx), cy[i] = LINK * (0.5 * (by + sy) - gy);
                const V alpha = (dx[i] * (by - sy) - dy[i] * (bx - sx)) * (1 / (L * L));
                const V across = (0.5 * (dx[i] * cy[i] - dy[i] * cx[i]) + I_LINK * alpha) * (1 / (L * L));
                fx[i] = -across * dy[i], fy[i] = across * dx[i];
                f[0] += fx[i], f[1] += fy[i], f[2] += rx[i] * fy[i] - ry[i] * fx[i];
            }
            J.transposed(f, tau);
            for (int i = 0; i < 3; i++) {
                const V px = cx[i] - fx[i] + tau[i] * dx[i], py = cy[i] - fy[i] + tau[i] * dy[i];
                V force = SLIDER * (qdd[i] - gx * E[i][0] - gy * E[i][1]);
                force += px * E[i][0] + py * E[i][1];
                for (int k = 0; k < LANES; k++)
                    effort[((g * LANES + k) * SPAN + s) * 3 + i] = force.x[k];
            }
            for (int c = 0; c < 3; c++)
                past[3][c] = past[2][c], past[2][c] = past[1][c], past[1][c] = past[0][c], past[0][c] = p[c];
        }
    }
}
"""
"""The 3-PRR by plane trigonometry: Newton's method on the pose of the platform, forces of rods on it, no checks."""


RNEA = """
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/multibody.hpp>
using namespace pinocchio;
using Eigen::Map, Eigen::Vector3d, Eigen::VectorXd;
using Matrix = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;
static JointModel joint(bool slides, const Vector3d &axis)
{
    const Vector3d X = Vector3d::UnitX(), Y = Vector3d::UnitY(), Z = Vector3d::UnitZ();
    if (slides)
        return axis == X ? JointModel(JointModelPX()) : axis == Y ? JointModel(JointModelPY())
             : axis == Z ? JointModel(JointModelPZ()) : JointModel(JointModelPrismaticUnaligned(axis));
    return axis == X ? JointModel(JointModelRX()) : axis == Y ? JointModel(JointModelRY())
         : axis == Z ? JointModel(JointModelRZ()) : JointModel(JointModelRevoluteUnaligned(axis));
}
extern "C" Model *tree(const double *gravity)
{
    Model *model = new Model;
    model->gravity.linear() = Map<const Vector3d>(gravity);
    return model;
}
extern "C" void add(Model *model, long parent, const double *k)
{
    const SE3 place(Map<const Matrix>(k), Map<const Vector3d>(k + 9));
    const auto name = "joint" + std::to_string(model->njoints);
    const auto id = model->addJoint(parent, joint(k[12] != 0, Map<const Vector3d>(k + 13)), place, name);
    const Eigen::Matrix3d I = Map<const Matrix>(k + 20);
    model->appendBodyToJoint(id, Inertia(k[16], Map<const Vector3d>(k + 17), I));
}
extern "C" void run(const Model *model, const double *q, const double *qd, const double *qdd, double *tau, long n)
{
    Data data(*model);
    using Vector = Map<const VectorXd>;
    const long nq = model->nq, nv = model->nv;
    for (long s = 0; s < n; s++, q += nq, qd += nv, qdd += nv)
        Map<VectorXd>(tau + s * nv, nv) = rnea(*model, data, Vector(q, nq), Vector(qd, nv), Vector(qdd, nv));
}
"""
"""Inverse dynamics of the tree with Pinocchio."""
LIMITS = ("BOOST_MPL_LIMIT_LIST_SIZE=30", "BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS", "BOOST_FUSION_INVOKE_MAX_ARITY=10")
"""Macros of Boost that the types of Pinocchio's joints need."""


def compiled(traced: Trace, python: str, folder: Path, lanes: int) -> tuple[Callable[[Drive, Array], Array], str]:
    """Efforts by CasADi's code from the traced equations, and CasADi's version."""
    mechanism, tape = traced.mechanism, traced.efforts
    nq, na, drives = mechanism.nq, mechanism.na, len(mechanism.drives)
    name = _generate(tape, nq + 3 * drives, nq + na, python, folder)
    sizes = {"LANES": lanes, "NQ": nq, "ND": drives, "NA": na, "SPAN": SPAN}
    run = _loaded(VECTORS + PATH, sizes, folder, f"{mechanism.model.path.stem}{lanes}")

    def efforts(drive: Drive, starts: Array) -> Array:
        given, found = np.concatenate(drive, axis=1), np.empty((SAMPLES, na))
        places = (WEIGHTS, given, starts, found)
        run(*(ctypes.c_void_p(x.ctypes.data) for x in places), ctypes.c_long(len(starts) // lanes))
        return found

    return efforts, name


def _generate(tape: Tape, inputs: int, outputs: int, python: str, folder: Path) -> str:
    """Write C of the first outputs of a tape with CasADi, and return its version."""
    fields = {"code": tape.code, "constants": tape.constants, "outputs": tape.outputs[:outputs]}
    np.savez(folder / "tape.npz", inputs=inputs, **fields)
    generate = [python, "-c", GENERATE, "tape.npz", "."]
    name = subprocess.run(generate, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()
    (folder / "generated.h").write_text(_of_vectors((folder / "efforts.c").read_text()))
    return name


def alone(traced: Trace, q: Array, drive: Drive, python: str, folder: Path) -> Mapping[str, tuple[Callable, Array]]:
    """The traced equations with all their checks at closed positions, by machine code of loopcheck and of g++.

    All compute `FEW` samples again and again, so that memory does not count; each comes with its outputs.
    """
    tape, given = traced.efforts, np.zeros((traced.columns.q.stop + 3 * traced.columns.drives, GAP))
    given[:, :FEW] = np.concatenate([q, *drive], axis=1)[:FEW].T
    nx, ny = len(given), len(tape.outputs)
    _generate(tape, nx, ny, python, folder)
    sizes = {"LANES": 8, "NX": nx, "NY": ny, "SAMPLES": FEW, "GAP": GAP}
    ours, width, step = load_map(map_job(tape, nx)), lanes_of_a_vector(), given.strides[0]
    calls: dict[str, Callable[..., None]] = {"loopcheck": lambda x, y: ours.call(x, y, step, step, FEW // width)}
    for text, options in FLAGS.items():
        name = f"{traced.mechanism.model.path.stem}_{len(calls)}"
        calls[text] = _loaded(VECTORS + MAP, sizes, folder, name, options)
    found = {text: np.zeros((ny, GAP)) for text in calls}
    places = {text: [ctypes.c_void_p(x.ctypes.data) for x in (given, y)] for text, y in found.items()}
    return {text: (repeated(partial(call, *places[text]), SAMPLES // FEW), found[text]) for text, call in calls.items()}


def by_hand(case: Case, drive: Drive, q: Array, folder: Path, steps: int) -> Callable[[], Array]:
    """Efforts of the 3-PRR by plane trigonometry with some of Newton's steps.

    Args:
        q: Closed positions of all joints at the starts of the lanes [m or rad], shape (lanes, nq).
    """
    mechanism = case.mechanism
    run = _loaded(VECTORS + BY_HAND, {"LANES": 8, "SPAN": SPAN, "STEPS": steps}, folder, f"by_hand{steps}")
    names = [joint.name for joint in mechanism.joints]
    x, link, platform = (q[:, mechanism.q_slices[names.index(name)].start] for name in ("q1", "q4", "q7"))
    angle = link + platform
    starts = np.stack([x + 0.3 * np.cos(link) + 0.15 * np.cos(angle), 0.3 * np.sin(link) + 0.15 * np.sin(angle), angle])
    given, found = np.concatenate(drive, axis=1), np.empty((SAMPLES, 3))
    arrays = [np.ascontiguousarray(x) for x in (WEIGHTS, mechanism.gravity, given, starts.T, found)]

    def efforts() -> Array:
        run(*(ctypes.c_void_p(x.ctypes.data) for x in arrays), ctypes.c_long(len(q) // 8))
        return arrays[-1]

    return efforts


def _loaded(
    source: str, sizes: Mapping[str, int], folder: Path, name: str, floats: Sequence[str] = ("-ffast-math",)
) -> Any:
    """The function `run` of a program in C++, compiled; a library of some name is loaded once."""
    (folder / f"{name}.cpp").write_text(source)
    options = ["-O3", "-march=native", *floats, "-shared", "-fPIC", *(f"-D{k}={v}" for k, v in sizes.items())]
    subprocess.run(["g++", *options, "-o", f"{name}.so", f"{name}.cpp", "-lmvec", "-lm"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / f"{name}.so")).run


def _of_vectors(source: str) -> str:
    """The function of a generated file, on vectors instead of numbers, which cannot be tested for null."""
    body = source[source.index("static int casadi_f0(") :]
    body = body[: body.index("\n}\n") + 3].replace("casadi_f0", "efforts")
    body = re.sub(r"arg\[0\]\? (arg\[0\]\[\d+\]) : 0", r"\1", body)
    body = re.sub(r"if \(res\[0\]!=0\) ", "", body)
    names = {
        "casadi_real": "V",
        "casadi_int": "long long",
        "casadi_sq": "square",
        "casadi_fabs": "fabs",
        "casadi_fmax": "fmax",
        "casadi_fmin": "fmin",
    }
    return re.sub("|".join(names), lambda found: names[found[0]], body)


def tracked(traced: Trace, drive: Drive, starts: Array) -> Callable[[], Array]:
    """The kernel of loopcheck with all its checks of samples, on lanes with given starts; returns its records."""
    equations, columns = _equations(traced, "llvm"), traced.columns
    given = Drive(*(np.ascontiguousarray(x).reshape(-1, SPAN, x.shape[1]) for x in drive))

    def act() -> Array:
        records = np.zeros((len(starts), SPAN, columns.marks.stop))
        records[:, 0, columns.q] = starts
        equations.track(equations.tolerance, given, records)
        return records.reshape(SAMPLES, -1)

    return act


def compile_pinocchio(python: str, folder: Path) -> None:
    """Compile the loop over Pinocchio."""
    (folder / "rnea.cpp").write_text(RNEA)
    find = "import importlib.util as u; print(*u.find_spec('casadi').submodule_search_locations)"
    casadi = Path(subprocess.run([python, "-c", find], check=True, capture_output=True, text=True).stdout.strip())
    prefix = next(parent for parent in Path(pinocchio.__file__).parents if parent.name == "cmeel.prefix")
    paths = [prefix / "include", casadi / "include" / "eigen3"]
    options = [*(f"-I{path}" for path in paths), *(f"-D{macro}" for macro in LIMITS), "-std=c++17", "-DNDEBUG", "-w"]
    command = ["g++", "-O3", "-march=native", "-shared", "-fPIC", *options, "-o", "rnea.so", "rnea.cpp"]
    subprocess.run(command, cwd=folder, check=True)


def tree_in_cpp(
    library: ctypes.CDLL, loop: Loop, states: list[tuple[Array, Array, Array]]
) -> tuple[Callable[[], Array], int]:
    """Efforts of the tree in a compiled loop over states, repeated, and their number."""
    model = loop.tree.model
    gravity = np.array(model.gravity.linear)
    library.tree.restype = ctypes.c_void_p
    copy = ctypes.c_void_p(library.tree(ctypes.c_void_p(gravity.ctypes.data)))
    for k in range(1, model.njoints):
        S, place, inertia = model.joints[k].createData().S.ravel(), model.jointPlacements[k], model.inertias[k]
        axis = S[:3] + S[3:]
        parts = (place.rotation.ravel(), place.translation, [S[:3].any()], axis, [inertia.mass], inertia.lever)
        numbers = np.concatenate([*parts, inertia.inertia.ravel()])
        library.add(copy, ctypes.c_long(model.parents[k]), ctypes.c_void_p(numbers.ctypes.data))
    many = states * (SAMPLES // len(states) + 1)
    arrays = [np.ascontiguousarray([state[k] for state in many]) for k in range(3)]
    tau = np.empty_like(arrays[2])

    def act() -> Array:
        places = (ctypes.c_void_p(x.ctypes.data) for x in (*arrays, tau))
        library.run(copy, *places, ctypes.c_long(len(many)))
        return tau

    return act, len(many)


class Way(NamedTuple):
    """A program that computes efforts."""

    program: str
    version: str
    computes: str
    act: Callable[[], Any]
    samples: int
    """Samples of a call."""
    error: Callable[[], float]
    """Largest error of an effort relative to the peak of its actuator; of a tree, to the largest effort [-]."""


def ways_of(case: Case, drive: Drive, guess: JointPositions, python: str, folder: Path) -> Iterator[Way]:
    """Programs for a robot; the first is the unit of the ratios."""
    mechanism, exact = case.mechanism, oracle(case, drive, guess)
    traced, ours = trace(mechanism, guess), version("loopcheck")
    for text, evaluator in (("machine code", "llvm"), ("numpy", "numpy")):
        batch = partial(inverse_dynamics, mechanism, drive, guess, traced=traced, evaluator=evaluator)
        yield Way("loopcheck", ours, text, batch, SAMPLES, lambda batch=batch: error(batch().effort, exact))
    starts = inverse_dynamics(mechanism, drive, guess, traced=traced).q[::SPAN].copy()
    track, columns = tracked(traced, drive, starts), traced.columns.effort
    text = "machine code, starts given"
    yield Way("loopcheck", ours, text, track, SAMPLES, lambda: error(track()[:, columns], exact))
    for lanes in (8, 4, 1):
        efforts, number = compiled(traced, python, folder, lanes)
        act, text = partial(efforts, drive, starts), f"C by g++, {lanes} lanes, starts given, no checks"
        yield Way("CasADi", number, text, act, SAMPLES, lambda act=act: error(act(), exact))
    if mechanism.model.path.stem == "3prr":
        for steps in (1, 2, 3):
            act, text = (
                by_hand(case, drive, starts, folder, steps),
                f"C++ by hand, {steps} steps, starts given, no checks",
            )
            yield Way("by hand", "", text, act, SAMPLES, lambda act=act: error(act(), exact))
    motion, loop = prescribe(case), simple_loop(mechanism)
    states = loop.states(motion.q, motion.qd, motion.qdd)
    tree = np.array([pinocchio.rnea(loop.tree.model, loop.tree.data, *state) for state in states])
    of_tree, samples = tree_in_cpp(ctypes.CDLL(str(folder / "rnea.so")), loop, states)
    many = states * (SAMPLES // len(states) // 10 + 1)
    bare, closed = partial(loop.bare, many), partial(loop.efforts, states)
    wanted = Noc().compute_efforts(replace(case, mechanism=replace(mechanism, wrenches=())), motion).effort
    yield from (
        Way("Pinocchio", version("pin"), *rest)
        for rest in (
            (
                "tree, loop in C++",
                of_tree,
                samples,
                lambda: np.abs(of_tree()[: len(tree)] - tree).max() / np.abs(tree).max(),
            ),
            ("tree, loop in Python", bare, len(many), lambda: 0.0),
            ("closed, loop in Python", closed, len(states), lambda: error(closed(), wanted)),
        )
    )


def rows_of(name: str, python: str, folder: Path) -> list[Mapping[str, Any]]:
    """A row of the table for each program."""
    ways = [*ways_of(*problem(name), python, folder)]
    spent = [*alternated({str(k): (way.act, way.samples) for k, way in enumerate(ways)}).values()]
    return [
        {
            **{"robot": name, "program": way.program, "version": way.version, "computes": way.computes},
            **{"time": 1e6 * times.min(), "ratio": np.median(times / spent[0]), "error": way.error()},
        }
        for way, times in zip(ways, spent, strict=True)
    ]


def rows_alone(name: str, python: str, folder: Path) -> Iterator[Mapping[str, Any]]:
    """Time of loopcheck over that of g++ for the traced equations alone: the median of seven, lowest and highest."""
    case, drive, guess = problem(name)
    q, traced = inverse_dynamics(case.mechanism, drive, guess).q, trace(case.mechanism, guess)
    ways = alone(traced, q, drive, python, folder)
    spent = alternated({text: (act, SAMPLES) for text, (act, _) in ways.items()})
    efforts = {text: found[traced.columns.effort, :FEW] for text, (_, found) in ways.items()}
    peak = np.abs(efforts["loopcheck"]).max(axis=1, keepdims=True)
    for text in FLAGS:
        ratio, apart = spent["loopcheck"] / spent[text], np.abs(efforts[text] - efforts["loopcheck"]) / peak
        times = {"loopcheck [µs]": 1e6 * spent["loopcheck"].min(), "CasADi [µs]": 1e6 * spent[text].min()}
        spread = {"ratio": np.median(ratio), "lowest": ratio.min(), "highest": ratio.max()}
        yield {"robot": name, "CasADi's C by": text, **times, **spread, "difference": apart.max()}


def main(python: str) -> None:
    """Write the table, and print the spread of the equations alone."""
    with TemporaryDirectory() as folder:
        bare = [row for name in ROBOTS for row in rows_alone(name, python, Path(folder))]
        print(pd.DataFrame(bare).to_markdown(index=False, floatfmt=".3g"))
        compile_pinocchio(python, Path(folder))
        rows = [row for name in ROBOTS for row in rows_of(name, python, Path(folder))]
    table = pd.DataFrame(rows)
    table.to_csv(TABLE, index=False, float_format="%.3g")
    print(table.to_markdown(index=False, floatfmt=".3g"))


if __name__ == "__main__":
    main(sys.argv[1])
