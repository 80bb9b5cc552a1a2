"""Settings of mutmut, read by the process that workers are forked from: workers are in another folder."""

from mutmut.configuration import config

config()
