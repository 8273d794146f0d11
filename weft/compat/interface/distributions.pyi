# module torch.distributions.bernoulli: imported by this module
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.distributions.utils import lazy_property, logits_to_probs, probs_to_logits

# module torch.distributions.binomial: imported by this module
from torch.distributions.distribution import Distribution
from torch.distributions.utils import lazy_property, logits_to_probs, probs_to_logits

# module torch.distributions.categorical: imported by this module
from torch.distributions.distribution import Distribution
from torch.distributions.utils import lazy_property, logits_to_probs, probs_to_logits

# module torch.distributions.cauchy: imported by this module
from torch.distributions.distribution import Distribution
from torch.distributions.utils import broadcast_all

# module torch.distributions.continuous_bernoulli: imported by this module
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.distributions.utils import probs_to_logits

# module torch.distributions.dirichlet: imported by this module
from torch.autograd.function import Function, once_differentiable

# module torch.distributions.geometric: imported by this module
from torch.distributions.distribution import Distribution
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.distributions.utils import lazy_property, logits_to_probs, probs_to_logits

# module torch.distributions.half_cauchy: imported by this module
from torch.distributions.transforms import AbsTransform
from torch.distributions.transformed_distribution import TransformedDistribution

# module torch.distributions.half_normal: imported by this module
from torch.distributions.transforms import AbsTransform
from torch.distributions.transformed_distribution import TransformedDistribution

# module torch.distributions.independent: imported by this module
from torch import Size

# module torch.distributions.kl: imported by this module
from torch.distributions.lowrank_multivariate_normal import _batch_lowrank_logdet, _batch_lowrank_mahalanobis

# module torch.distributions.laplace: imported by this module
from torch.distributions.distribution import Distribution
from torch.distributions.utils import broadcast_all

# module torch.distributions.logistic_normal: imported by this module
from torch.distributions.independent import Independent

# module torch.distributions.mixture_same_family: imported by this module
from torch.distributions.constraints import MixtureSameFamilyConstraint

# module torch.distributions.multinomial: imported by this module
from torch.distributions.categorical import Categorical
from torch.distributions.distribution import Distribution
from torch.distributions.utils import broadcast_all

# module torch.distributions.multivariate_normal: imported by this module
from torch.distributions.distribution import Distribution
from torch.distributions.utils import lazy_property

# module torch.distributions.negative_binomial: imported by this module
from torch.distributions.distribution import Distribution
from torch.distributions.utils import logits_to_probs, probs_to_logits

# module torch.distributions.normal: imported by this module
from torch.distributions.utils import broadcast_all

# module torch.distributions.one_hot_categorical: imported by this module
from torch.distributions.categorical import Categorical
from torch.distributions.distribution import Distribution

# module torch.distributions.relaxed_bernoulli: imported by this module
from torch.distributions.distribution import Distribution
from torch.distributions.transformed_distribution import TransformedDistribution
from torch.distributions.utils import lazy_property, logits_to_probs, probs_to_logits

# module torch.distributions.relaxed_categorical: imported by this module
from torch.distributions.categorical import Categorical
from torch.distributions.distribution import Distribution
from torch.distributions.transformed_distribution import TransformedDistribution
from torch.distributions.utils import broadcast_all

# module torch.distributions.transforms: imported by this module
from torch.distributions.utils import broadcast_all, lazy_property
from torch.nn.functional import pad
from torch._C._nn import softplus

# module torch.distributions.utils: imported by this module
from torch import SymInt, dtype as _dtype
from torch.overrides import is_tensor_like

# module torch.distributions.wishart: imported by this module
from torch.distributions.multivariate_normal import _precision_to_scale_tril
from torch.distributions.utils import lazy_property
