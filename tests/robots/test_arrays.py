"""Singular values of matrices on which numpy's method does not converge."""

import numpy as np
import pytest

from loopcheck.robots.arrays import svd


def fails(*_: object, **__: object) -> None:
    raise np.linalg.LinAlgError("SVD did not converge")


@pytest.mark.parametrize("full", [True, False])
def test_matrices_are_decomposed_where_numpy_does_not_converge(full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rank 2, in a batch with two axes."""
    rng = np.random.default_rng(3)
    A = rng.normal(size=(2, 3, 4, 2)) @ rng.normal(size=(2, 3, 2, 6))
    shapes = [part.shape for part in np.linalg.svd(A, full_matrices=full)]
    monkeypatch.setattr(np.linalg, "svd", fails)
    U, values, V_T = svd(A, full_matrices=full)
    assert [part.shape for part in (U, values, V_T)] == shapes
    np.testing.assert_allclose((U * values[..., None, :]) @ V_T[..., :4, :], A, atol=1e-13)
    assert (values[..., 2:] < 1e-14).all()


def test_a_matrix_that_is_not_finite_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np.linalg, "svd", fails)
    with pytest.raises(np.linalg.LinAlgError):
        svd(np.full((2, 2), np.nan))
