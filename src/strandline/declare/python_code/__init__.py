"""Python that users write: files of the project are loaded and checked, never imported."""
