"""MuJoCo Warp's model on its device, copied from MuJoCo's, with its omissions, and read back."""

import copy
import dataclasses
from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np

from loopcheck.engines.boundary import want_representable
from loopcheck.engines.mujoco_warp._warp import mujoco_warp, warp
from loopcheck.robots.arrays import AnyArray
from loopcheck.robots.errors import EngineError

NAME = "mujoco_warp"


def put(model: Any) -> Any:
    """The model on the device.

    Args:
        model: MuJoCo's.

    Raises:
        NotRepresentableError: If MuJoCo Warp refuses something of the model, or would drop it in silence.
        EngineError: If it fails.
    """
    refusals = list(_dropped(model))
    try:
        on_device = mujoco_warp.put_model(model)
    except (NotImplementedError, ValueError) as error:
        refusals.append(str(error))
    except RuntimeError as error:
        raise EngineError(f"{NAME}: {error}") from error
    want_representable(NAME, refusals)
    return on_device


def _dropped(model: Any) -> Iterator[str]:
    """Omitted elements with an effect that no error reports."""
    if model.opt.disableactuator:
        groups = [str(group) for group in range(32) if model.opt.disableactuator >> group & 1]
        yield f"option actuatorgroupdisable {' '.join(groups)} (the disabled actuators would act)"


def placed(model: Any, data: Any) -> Any:
    """A state on the device, with room for all rows of its constraints.

    Data of MuJoCo Warp made before a computation have room for 64 rows; it drops the rows above.

    Args:
        model: MuJoCo's.
        data: Its data with the state.
    """
    scratch = mujoco.MjData(model)
    for name in ("qpos", "qvel", "act"):
        getattr(scratch, name)[:] = getattr(data, name)
    mujoco.mj_fwdPosition(model, scratch)
    least = int(mujoco_warp.put_data(model, data).njmax)
    return mujoco_warp.put_data(model, data, njmax=max(least, scratch.nefc))


def options_changed(model: Any, on_device: Any) -> str:
    """Differences between the options on the device and in the file, in words; empty without differences.

    Args:
        model: MuJoCo's.
        on_device: Result of `put`.
    """
    changed = []
    for field in dataclasses.fields(on_device.opt):
        expected = getattr(model.opt, field.name, None)
        value = _read(getattr(on_device.opt, field.name))
        if expected is not None and not np.allclose(value, expected, rtol=1e-6, atol=0):
            changed.append(f"{field.name} {value.item():g} instead of {float(expected):g}")
    return ", ".join(changed)


def read_back(model: Any, on_device: Any) -> Any:
    """A model of MuJoCo with the content of the device's model, as far as the device has it.

    Args:
        model: MuJoCo's.
        on_device: Result of `put`.
    """
    own = copy.copy(model)
    for field in dataclasses.fields(on_device):
        value, place = getattr(on_device, field.name), getattr(own, field.name, None)
        if isinstance(value, warp.array) and isinstance(place, np.ndarray) and place.size:
            values = _read(value)
            if values.size == place.size:
                place[...] = values.reshape(place.shape)
    own.opt.gravity[:] = _read(on_device.opt.gravity).ravel()
    own.opt.disableflags = on_device.opt.disableflags
    return own


def _read(value: Any) -> AnyArray:
    """A field of the device's model; for fields that may differ between worlds, that of the first."""
    return np.asarray(value.numpy() if isinstance(value, warp.array) else value)
