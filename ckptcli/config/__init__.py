"""burn.toml: find it, read it, check it.

The section `[autodiff.logger]` is Burn's and read as Burn reads it; the table `[ckpt]` is ours.
"""

from ckptcli.config.defaults import (
    Defaults as Defaults,
    WrongValue as WrongValue,
    read_defaults as read_defaults,
    wrong_value as wrong_value,
)
from ckptcli.config.logger import (
    LEVELS as LEVELS,
    LOGGER_LEVELS as LOGGER_LEVELS,
    LoggerSettings as LoggerSettings,
    logger_section as logger_section,
)
from ckptcli.config.search import (
    FILE_NAMES as FILE_NAMES,
    FoundConfig as FoundConfig,
    find_config as find_config,
    named_config as named_config,
    read_config_file as read_config_file,
)
from ckptcli.config.trust import as_trusted as as_trusted
