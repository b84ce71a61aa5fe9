"""The sections of the project file in loading order: a section may refer to earlier ones.

A new kind of node is added to two tables: this one and `dispatch.workers.WORKERS`.
"""

from .chains.section import CHAINS
from .datasets.section import DATASETS
from .jobs.section import JOBS
from .section import Section
from .sources.section import SOURCES
from .timelines.section import TIMELINES

SECTIONS: tuple[Section, ...] = (SOURCES, DATASETS, CHAINS, JOBS, TIMELINES)
