"""What Alembic runs: the migrations, on the caller's connection and inside its transaction."""

from alembic import context

from strandline.catalog.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
