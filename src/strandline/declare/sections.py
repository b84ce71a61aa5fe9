"""The sections of the project file, in the order they are loaded: a section may refer to those before it.

One of the two tables that a new kind of node is added to; the other is `dispatch.workers.WORKERS`.
"""

from .chains.section import CHAINS
from .datasets.section import DATASETS
from .jobs.section import JOBS
from .section import Section
from .sources.section import SOURCES

SECTIONS: tuple[Section, ...] = (SOURCES, DATASETS, CHAINS, JOBS)
