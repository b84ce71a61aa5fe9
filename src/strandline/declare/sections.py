"""The sections of the project file in loading order: a section may refer to earlier ones.

A new kind of node is added to two tables: this one and `dispatch.workers.WORKERS`.
"""

from .chains.section import CHAINS
from .datasets.section import DATASETS
from .endpoints.section import ENDPOINTS
from .entities.section import ENTITIES
from .jobs.section import JOBS
from .publish.section import PUBLISH
from .section import Section
from .sources.section import SOURCES
from .timelines.section import TIMELINES
from .triggers.section import TRIGGERS
from .views.section import VIEWS

SECTIONS: tuple[Section, ...] = (
    SOURCES,
    DATASETS,
    CHAINS,
    JOBS,
    TIMELINES,
    ENTITIES,
    PUBLISH,
    VIEWS,
    ENDPOINTS,
    TRIGGERS,
)
"""What is published comes after all that it may be made of."""
