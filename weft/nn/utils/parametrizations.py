"""Parametrizations that make weights orthogonal or give them a norm."""

from __future__ import annotations

from typing import Any

import weft

from ...core.grad_mode import no_grad
from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module
from . import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

ORTHOGONAL_MAPS = ("matrix_exp", "cayley", "householder")


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Make a weight of a module orthogonal (its columns, or its rows if there are fewer), and keep it so in training.

    Shapes: [..., n, k]. `orthogonal_map` is "matrix_exp" or "cayley" of a skew-symmetric matrix, or "householder", a
    product of reflections: the default where n and k differ. With `use_trivialization` the map is applied around a
    base point, which is what the weight is assigned to.
    Raises: ValueError for a weight of less than two dims, and for an unknown map.
    Source: Lezcano-Casado, Trivializations for gradient-based optimization on manifolds, 2019.

    >>> import weft as torch
    >>> layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(3, 3))
    >>> torch.allclose(layer.weight @ layer.weight.mT, torch.eye(3), atol=1e-5)
    True
    """
    weight = _weight(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in ORTHOGONAL_MAPS:
        names = ", ".join(f'"{each}"' for each in ORTHOGONAL_MAPS)
        raise ValueError(f"orthogonal_map has to be one of {names}. Got: {orthogonal_map}")
    parametrization = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, parametrization, unsafe=True)


class _Orthogonal(Module):
    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    @property
    def has_base(self) -> bool:
        return "base" in self._buffers

    def forward(self, X: Tensor) -> Tensor:
        wide = X.size(-2) < X.size(-1)
        if wide:
            X = X.mT
        Q = self._reflections(X) if self.orthogonal_map == "householder" else self._exponential(X)
        if self.has_base:
            Q = self.base @ Q  # type: ignore[operator]  # not None then
        return Q.mT if wide else Q

    def _exponential(self, X: Tensor) -> Tensor:
        """The first k columns of an orthogonal n x n matrix, computed from the elements below the diagonal of X [..., n, k]."""
        n, k = X.shape[-2:]
        X = X.tril()
        if n != k:
            X = weft.cat([X, X.new_zeros(*X.shape[:-1], n - k)], dim=-1)
        A = X - X.mH
        if self.orthogonal_map == "matrix_exp":
            Q = weft.matrix_exp(A)
        else:
            identity = weft.eye(n, dtype=A.dtype, device=A.device)
            Q = weft.linalg.solve(
                weft.add(identity, A, alpha=-0.5).expand_as(A), weft.add(identity, A, alpha=0.5)
            )
        return Q if n == k else Q[..., :k]

    def _reflections(self, X: Tensor) -> Tensor:
        A = X.tril(diagonal=-1)
        tau = 2.0 / (1.0 + (A * A).sum(dim=-2))
        Q = weft.linalg.householder_product(A, tau)
        return Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)  # the diagonal contains signs

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        wide = Q.size(-2) < Q.size(-1)
        tall = Q.mT if wide else Q
        if self.has_base:
            self.base = _completed(tall)
            # All maps take this to the identity: it leaves a skew-symmetric matrix of zeros, and in the reflections,
            # which negate every column, its diagonal restores the sign.
            start = weft.zeros_like(Q)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return start
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        A, tau = weft.geqrf(tall)
        diagonal = A.diagonal(dim1=-2, dim2=-1)
        diagonal.sign_()
        diagonal[tau == 0.0] *= -1
        return A.mT if wide else A


def _completed(Q: Tensor) -> Tensor:
    """An orthogonal n x n matrix that begins with the columns of Q [..., n, k], made orthogonal if they are not."""
    n, k = Q.shape[-2:]
    if n != k:
        more = weft.randn(*Q.shape[:-1], n - k, dtype=Q.dtype, device=Q.device)
        return _made_orthogonal(weft.cat([Q, more], dim=-1))
    return Q.clone() if _is_orthogonal(Q) else _made_orthogonal(Q)


def _is_orthogonal(Q: Tensor) -> bool:
    n, k = Q.shape[-2:]
    identity = weft.eye(k, dtype=Q.dtype, device=Q.device)
    return weft.allclose(
        Q.mH @ Q, identity.expand(*Q.shape[:-2], k, k), atol=10.0 * n * weft.finfo(Q.dtype).eps
    )


def _made_orthogonal(A: Tensor) -> Tensor:
    """Return the factor Q of a QR decomposition, with the signs that make it the nearest to A on the diagonal of R."""
    reflectors, tau = weft.geqrf(A)
    Q = weft.linalg.householder_product(reflectors, tau)
    return Q * reflectors.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Module:
    """Make a weight the product of a magnitude (`original0`) and a direction (`original1`), for each slice of `dim`.

    `dim=None` takes the norm of the whole weight.
    Source: Salimans and Kingma, Weight normalization, 2016.

    >>> import weft as torch
    >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))
    >>> layer.parametrizations.weight.original0.shape
    torch.Size([2, 1])
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Rename the keys that the older function torch.nn.utils.weight_norm saved."""
        old = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except(weight, self.dim), weight


def norm_except(v: Tensor, dim: int) -> Tensor:
    """The norm over all dims but one, which keeps its size while the others become 1; dim -1 stands for no dim."""
    if dim == -1:
        return weft.linalg.vector_norm(v)
    others = [each for each in range(v.dim()) if each != dim]
    return weft.linalg.vector_norm(v, dim=others, keepdim=True)


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its largest singular value, which is followed by power iterations, one call at a time.

    The weight is seen as a matrix whose rows are the slices of `dim`: 0, or 1 for transposed convolutions. Power
    iterations take place in training mode only.
    Raises: ValueError if there is no such weight, or `n_power_iterations` is not positive.
    Source: Miyato et al., Spectral normalization for generative adversarial networks, 2018.

    >>> import weft as torch
    >>> layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(20, 40))
    >>> round(torch.linalg.matrix_norm(layer.weight, 2).item(), 1)
    1.0
    """
    weight = _weight(module, name)
    if dim is None:
        dim = default_dim(module)
    return parametrize.register_parametrization(
        module, name, _SpectralNorm(weight, n_power_iterations, dim, eps)
    )


def default_dim(module: Module) -> int:
    """Return the dim of the outputs in a module's weight."""
    from ..modules import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d

    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.ndim}, {weight.ndim - 1}] "
                f"but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % weight.ndim
        self.eps = eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight, self.dim)
            height, width = matrix.shape
            u = matrix.new_empty(height).normal_(0, 1)
            v = matrix.new_empty(width).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            # Training starts with a good estimate then.
            power_iterations(matrix, self._u, self._v, 15, eps)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            power_iterations(matrix, self._u, self._v, self.n_power_iterations, self.eps)
        # Copies: the next call writes to the buffers, and backward needs the values of this one.
        u, v = self._u.clone(), self._v.clone()
        return weight / weft.vdot(u, weft.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """Return the weight as a matrix [size of dim, all others]."""
    return weight.movedim(dim, 0).flatten(1)


@no_grad()
def power_iterations(matrix: Tensor, u: Tensor, v: Tensor, count: int, eps: float) -> None:
    """Bring u and v nearer to the first left and right singular vectors of a matrix, in place."""
    for _ in range(count):
        u.copy_(F.normalize(weft.mv(matrix, v), dim=0, eps=eps))
        v.copy_(F.normalize(weft.mv(matrix.mH, u), dim=0, eps=eps))


def _weight(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight
