"""Mechanisms that are locked, at a change point, coincident, next to massless, or driven without effect."""

from hypothesis import strategies as st

AXES = ("1 0 0", "0 1 0", "0 0 1")
POINTS = ("0 0 0", "0.2 0 0", "0.3 0 0", "-0.2 0 0", "0 0.2 0", "0 0 0.2")
"""Few places, most of them in line, so that joints and closures coincide and links stretch [m]."""
MASSES = ("1", "1", "0.3", "1e-6", "1e-12")
"""Of bodies [kg], and their moments of inertia [kg m²]."""
GEARS = ("1", "1", "-2", "1e-9", "1e6")
SPRINGS = ("", "", ' stiffness="20" damping="0.1"', ' armature="0.01"')


def linkage(lengths: tuple[float, float, float, float], drives: tuple[str, ...] = ("crank",)) -> str:
    """An MJCF of a planar four-bar drawn flat.

    Args:
        lengths: Crank, coupler, rocker and ground, signed, along x; they close if the first three add up to the
            last [m].
        drives: Joints with motors.
    """
    crank, coupler, rocker, ground = lengths
    motors = "".join(f'<motor name="{joint}" joint="{joint}"/>' for joint in drives)
    return f"""<mujoco><worldbody>
      <body name="crank"><joint name="crank" axis="0 1 0"/>
        <inertial pos="{crank / 2} 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
        <body name="coupler" pos="{crank} 0 0"><joint name="coupler" axis="0 1 0"/>
          <inertial pos="{coupler / 2} 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
          <site name="end" pos="{coupler} 0 0"/></body></body>
      <body name="rocker" pos="{ground} 0 0"><joint name="rocker" axis="0 1 0"/>
        <inertial pos="{-rocker / 2} 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
        <site name="tip" pos="{-rocker} 0 0"/></body></worldbody>
      <equality><connect name="loop" site1="end" site2="tip"/></equality><actuator>{motors}</actuator></mujoco>"""


@st.composite
def mechanisms(draw: st.DrawFn) -> str:
    """An MJCF of up to four bodies with any closures between them, and motors on any of their joints."""
    count = draw(st.integers(1, 4))
    parents = [draw(st.none() | st.integers(0, k - 1)) if k else None for k in range(count)]
    kinds = [_joint_kind(draw, is_base=parent is None) for parent in parents]
    bodies = [_body(draw, k, kind) for k, kind in enumerate(kinds)]

    def subtree(parent: int | None) -> str:
        return "".join(f"{bodies[k]}{subtree(k)}</body>" for k in range(count) if parents[k] == parent)

    closures = [_closure(draw, k, kinds) for k in range(draw(st.integers(0, 3)))]
    drivable = [k for k, kind in enumerate(kinds) if kind in ("hinge", "slide")]
    motors = [_motor(draw, k, drivable) for k in range(draw(st.integers(1, 3)) if drivable else 0)]
    return (
        f"<mujoco><worldbody>{subtree(None)}</worldbody><equality>{''.join(closures)}</equality>"
        f"<actuator>{''.join(motors)}</actuator></mujoco>"
    )


def _joint_kind(draw: st.DrawFn, *, is_base: bool) -> str:
    return draw(st.sampled_from(("hinge", "hinge", "hinge", "slide", "ball", "free" if is_base else "hinge")))


def _body(draw: st.DrawFn, k: int, kind: str) -> str:
    """The element of a body, left open for its children."""
    place, centre, site = (draw(st.sampled_from(POINTS)) for _ in range(3))
    mass, axis = draw(st.sampled_from(MASSES)), draw(st.sampled_from(AXES))
    spring = draw(st.sampled_from(SPRINGS)) if kind != "free" else ""
    return (
        f'<body name="b{k}" pos="{place}"><joint name="j{k}" type="{kind}" axis="{axis}"{spring}/>'
        f'<inertial pos="{centre}" mass="{mass}" diaginertia="{mass} {mass} {mass}"/><site name="s{k}" pos="{site}"/>'
    )


def _closure(draw: st.DrawFn, k: int, joints: list[str]) -> str:
    """A closure between two bodies, a body and the world, two joints, or a closure that holds a joint in place."""
    drivable = [j for j, kind in enumerate(joints) if kind in ("hinge", "slide")]
    kind = draw(st.sampled_from(("connect", "connect", "weld", *(("joint",) if drivable else ()))))
    among = drivable if kind == "joint" else range(len(joints))
    first, second = draw(st.sampled_from(among)), draw(st.none() | st.sampled_from(among))
    other = "" if second in (None, first) else f"{second}"
    if kind == "joint":
        leader = f' joint2="j{other}"' if other else ""
        ratio = draw(st.sampled_from(("0 1 0 0 0", "0 0 0 0 0")))
        return f'<joint name="c{k}" joint1="j{first}"{leader} polycoef="{ratio}"/>'
    partner = f' body2="b{other}"' if other else ""
    anchor = f' anchor="{draw(st.sampled_from(POINTS))}"' if kind == "connect" else ""
    return f'<{kind} name="c{k}" body1="b{first}"{partner}{anchor}/>'


def _motor(draw: st.DrawFn, k: int, joints: list[int]) -> str:
    return f'<motor name="m{k}" joint="j{draw(st.sampled_from(joints))}" gear="{draw(st.sampled_from(GEARS))}"/>'
