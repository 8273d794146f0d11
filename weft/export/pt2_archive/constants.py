"""Where an archive of an exported program keeps what: `torch.export.pt2_archive.constants`. These paths are PyTorch's."""

ARCHIVE_ROOT_NAME = "package"
ARCHIVE_FORMAT_PATH = "archive_format"
ARCHIVE_FORMAT_VALUE = "pt2"
ARCHIVE_VERSION_PATH = "archive_version"
ARCHIVE_VERSION_VALUE = "0"

MODELS_DIR = "models/"
MODELS_FILENAME_FORMAT = "models/{}.json"

WEIGHTS_DIR = "data/weights/"
WEIGHTS_CONFIG_FILENAME_FORMAT = "data/weights/{}_weights_config.json"
WEIGHT_FILENAME_PREFIX = "weight_"
XL_MODEL_WEIGHTS_DIR = "xl_model_weights/"
XL_MODEL_WEIGHTS_PARAM_CONFIG_PATH = "xl_model_weights/model_param_config"

CONSTANTS_DIR = "data/constants/"
CONSTANTS_CONFIG_FILENAME_FORMAT = "data/constants/{}_constants_config.json"
TENSOR_CONSTANT_FILENAME_PREFIX = "tensor_"
CUSTOM_OBJ_FILENAME_PREFIX = "custom_obj_"
OPAQUE_OBJ_FILENAME_PREFIX = "opaque_obj_"

SAMPLE_INPUTS_DIR = "data/sample_inputs/"
SAMPLE_INPUTS_FILENAME_FORMAT = "data/sample_inputs/{}.pt"

EXTRA_DIR = "extra/"
MODULE_INFO_PATH = "extra/module_info.json"

AOTINDUCTOR_DIR = "data/aotinductor/"
EXECUTORCH_DIR = "data/executorch/"
MTIA_DIR = "data/mtia"
